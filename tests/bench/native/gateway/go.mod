module odradek/bench/gateway

go 1.22
