// The clients of the bench of storms: many connections that come at once, one request at a time on each.
//
//	storm HOST:PORT CLIENTS SECONDS PAYLOAD own|shared [-tls CA] [-scram USER:PASSWORD]
//
// Clients connect evenly over so many seconds. Each pushes the bytes of the file PAYLOAD once and keeps its
// connection. When all have pushed, or the program has given up, it prints a line of JSON. Each line on standard
// input lets it close all connections at once and connect again, with the same instance ids. It ends when standard
// input closes. With "own" each client has an address of 127.0.0.0/8 for itself.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// giveUp is how long a storm may last, longer than any client waits.
const giveUp = 150 * time.Second

const serverName = "localhost"

// report is what one storm took.
type report struct {
	Seconds    float64        `json:"seconds"`    // from the first attempt until the last client has pushed
	P50        float64        `json:"p50_s"`      // of a client, from its first attempt to the answer of its push
	P99        float64        `json:"p99_s"`      //
	Again      int            `json:"again"`      // clients that had to try again
	Reasons    map[string]int `json:"reasons"`    // of all attempts that failed
	Unfinished int            `json:"unfinished"` // clients that have not pushed
	CPU        float64        `json:"cpu_s"`      // of this program
}

func main() {
	debug.SetGCPercent(400)
	if len(os.Args) < 6 {
		fail(errors.New("usage: storm HOST:PORT CLIENTS SECONDS PAYLOAD own|shared [-tls CA] [-scram USER:PASSWORD]"))
	}
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	check(err)
	payload, err := os.ReadFile(os.Args[4])
	check(err)
	target := &target{address: os.Args[1], payload: payload, ownAddresses: os.Args[5] == "own"}
	for rest := os.Args[6:]; len(rest) > 1; rest = rest[2:] {
		switch rest[0] {
		case "-tls":
			target.tls = trusting(rest[1])
		case "-scram":
			user, password, _ := strings.Cut(rest[1], ":")
			target.login = &login{user: user, password: password}
		}
	}
	clients := make([]*client, count)
	for i := range clients {
		clients[i] = &client{number: i, target: target}
	}
	lines := bufio.NewScanner(os.Stdin)
	for again := true; again; again = lines.Scan() {
		for _, each := range clients {
			each.leave()
		}
		check(json.NewEncoder(os.Stdout).Encode(storm(clients, time.Duration(seconds*float64(time.Second)))))
	}
}

// storm lets all clients connect and push.
func storm(clients []*client, over time.Duration) report {
	used, began := cpuSeconds(), time.Now()
	took := make([]atomic.Int64, len(clients))
	failures := &failures{reasons: map[string]int{}}
	var all sync.WaitGroup
	all.Add(len(clients))
	for i, each := range clients {
		start := began.Add(over * time.Duration(i) / time.Duration(len(clients)))
		go func() {
			defer all.Done()
			time.Sleep(time.Until(start))
			if each.push(began.Add(giveUp), failures) {
				took[i].Store(int64(time.Since(start)))
			}
		}()
	}
	all.Wait()
	found := report{Seconds: time.Since(began).Seconds(), Again: failures.clients, Reasons: failures.reasons}
	var ended []float64
	for i := range took {
		if each := took[i].Load(); each > 0 {
			ended = append(ended, time.Duration(each).Seconds())
		}
	}
	found.Unfinished = len(clients) - len(ended)
	if slices.Sort(ended); len(ended) > 0 {
		found.P50, found.P99 = ended[(len(ended)-1)/2], ended[(len(ended)-1)*99/100]
	}
	found.CPU = cpuSeconds() - used
	return found
}

// trusting is the TLS of a client that starts each session from nothing. The certificate is checked once for all
// clients, so that they cost less than the server.
func trusting(path string) *tls.Config {
	pem, err := os.ReadFile(path)
	check(err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		fail(errors.New("no certificate in " + path))
	}
	var trusted atomic.Pointer[x509.Certificate]
	return &tls.Config{
		ServerName: serverName, MinVersion: tls.VersionTLS13, InsecureSkipVerify: true,
		CurvePreferences: []tls.CurveID{tls.X25519}, SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			leaf := state.PeerCertificates[0]
			if known := trusted.Load(); known != nil && known.Equal(leaf) {
				return nil
			}
			_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: serverName})
			if err == nil {
				trusted.Store(leaf)
			}
			return err
		},
	}
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(why error) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
