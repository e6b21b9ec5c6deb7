package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// The waits are the defaults of Kafka's Java clients.
const (
	leastBackoff = 50 * time.Millisecond
	mostBackoff  = time.Second
	leastSetup   = 10 * time.Second
	mostSetup    = 30 * time.Second
	patience     = 30 * time.Second
)

// target is the server, and what clients do there.
type target struct {
	address      string
	payload      []byte
	ownAddresses bool
	tls          *tls.Config
	login        *login
}

// client has an instance id that outlives its connections.
type client struct {
	number     int
	target     *target
	id         [16]byte
	connection net.Conn
}

// failures counts the attempts that failed.
type failures struct {
	sync.Mutex
	clients int
	reasons map[string]int
}

func (f *failures) add(reason string, isFirst bool) {
	f.Lock()
	defer f.Unlock()
	f.reasons[reason]++
	if isFirst {
		f.clients++
	}
}

// push connects and pushes until a push is accepted; false if that did not happen in time.
func (c *client) push(until time.Time, failures *failures) bool {
	backoff, setup := leastBackoff, leastSetup
	for isFirst := true; time.Now().Before(until); isFirst = false {
		err := c.attempt(setup)
		if err == nil {
			return true
		}
		failures.add(reasonOf(err), isFirst)
		c.leave()
		time.Sleep(time.Duration(float64(backoff) * (0.8 + 0.4*rand.Float64())))
		backoff, setup = min(2*backoff, mostBackoff), min(2*setup, mostSetup)
	}
	return false
}

// leave closes the connection, as the end of a process does.
func (c *client) leave() {
	if c.connection != nil {
		c.connection.Close()
		c.connection = nil
	}
}

// attempt is one connection, with everything that a client does on it.
func (c *client) attempt(setup time.Duration) error {
	dialer := net.Dialer{Timeout: setup}
	if c.target.ownAddresses {
		number := c.number + 1
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, byte(1+number>>16), byte(number>>8), byte(number))}
	}
	raw, err := dialer.Dial("tcp", c.target.address)
	if err != nil {
		return err
	}
	c.connection = raw
	connection := raw
	if c.target.tls != nil {
		raw.SetDeadline(time.Now().Add(patience))
		secure := tls.Client(raw, c.target.tls)
		if err := secure.Handshake(); err != nil {
			return err
		}
		connection = secure
	}
	wire := &wire{connection: connection, reader: bufio.NewReaderSize(connection, 1024)}
	if _, err := wire.ask(apiVersions, 3, apiVersionsBody); err != nil {
		return err
	}
	if c.target.login != nil {
		if err := c.target.login.run(wire); err != nil {
			return err
		}
	}
	subscription, err := c.subscribe(wire)
	if err != nil {
		return err
	}
	return wire.push(c.id, subscription, c.target.payload)
}

// subscribe asks for the subscriptions, and for an id if there is none.
func (c *client) subscribe(wire *wire) (uint32, error) {
	answer, err := wire.ask(getTelemetrySubscriptions, 0, append(c.id[:], 0))
	if err != nil {
		return 0, err
	}
	// tagged fields of the header, throttle time, error, id, subscription
	if len(answer) < 1+4+2+16+4 {
		return 0, io.ErrUnexpectedEOF
	}
	if code := number16(answer[5:]); code != 0 {
		return 0, fmt.Errorf("GetTelemetrySubscriptions: error %d", code)
	}
	copy(c.id[:], answer[7:23])
	return number32(answer[23:]), nil
}

// reasonOf names what happened without the addresses, so that it can be counted.
func reasonOf(err error) string {
	var failed net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	case errors.As(err, &failed) && failed.Timeout():
		return "timeout"
	}
	return err.Error()
}
