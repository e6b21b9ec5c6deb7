module odradek/bench/storm

go 1.22
