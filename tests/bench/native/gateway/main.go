// The programs of the gateway bench: two relays to compare with, a broker that costs little, and the load.
//
//	gateway relay copy|frames HOST:PORT [CERTIFICATE]   a relay; prints "ready port=N"
//	gateway broker [CERTIFICATE]                        answers well-formed frames; prints "ready port=N"
//	gateway load HOST:PORT produce|fetch PARTITIONS BYTES CONNECTIONS DEPTH plain|tls
//
// Relay and broker end when their standard input closes. The load prints a line when it runs, and its counts since
// the last mark for each line "mark" on standard input.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strconv"
)

func main() {
	debug.SetGCPercent(400)
	if len(os.Args) < 2 {
		fail("relay, broker or load?")
	}
	arguments := os.Args[2:]
	switch os.Args[1] {
	case "relay":
		relay := relays[arguments[0]]
		if relay == nil {
			fail("copy or frames?")
		}
		serve(arguments[2:], func(client net.Conn) {
			upstream, err := net.Dial("tcp", arguments[1])
			if err != nil {
				client.Close()
				return
			}
			relay(client, upstream)
		})
	case "broker":
		serve(arguments, answer)
	case "load":
		load(arguments[0], arguments[1], number(arguments[2]), number(arguments[3]), number(arguments[4]),
			number(arguments[5]), arguments[6] == "tls")
	}
}

// serve accepts connections on a free port, over TLS if there is a certificate, until standard input closes.
func serve(certificate []string, each func(net.Conn)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	port := listener.Addr().(*net.TCPAddr).Port
	if len(certificate) > 0 {
		pair, err := tls.LoadX509KeyPair(certificate[0], certificate[0])
		check(err)
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	go func() {
		for {
			connection, err := listener.Accept()
			check(err)
			go each(connection)
		}
	}()
	fmt.Printf("ready port=%d\n", port)
	io.Copy(io.Discard, os.Stdin)
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
