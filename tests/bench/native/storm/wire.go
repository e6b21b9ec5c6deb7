package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// Keys of APIs.
const (
	saslHandshake             = 17
	apiVersions               = 18
	saslAuthenticate          = 36
	getTelemetrySubscriptions = 71
	pushTelemetry             = 72
)

const (
	clientID    = "storm"
	mostBytes   = 1 << 20
	correlation = 7
)

var (
	apiVersionsBody = []byte("\x06storm\x041.0\x00")
	number16        = binary.BigEndian.Uint16
	number32        = binary.BigEndian.Uint32
)

// wire is a connection with at most one request in flight.
type wire struct {
	connection net.Conn
	reader     *bufio.Reader
}

// ask sends a request, and returns the response after its correlation id. The SASL requests here are the only
// ones whose header has no tagged fields.
func (w *wire) ask(key, version uint16, body []byte) ([]byte, error) {
	frame := make([]byte, 4, 32+len(body))
	frame = binary.BigEndian.AppendUint16(frame, key)
	frame = binary.BigEndian.AppendUint16(frame, version)
	frame = binary.BigEndian.AppendUint32(frame, correlation)
	frame = appendString(frame, clientID)
	if key != saslHandshake && key != saslAuthenticate {
		frame = append(frame, 0)
	}
	frame = append(frame, body...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	w.connection.SetDeadline(time.Now().Add(patience))
	if _, err := w.connection.Write(frame); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(w.reader, head[:]); err != nil {
		return nil, err
	}
	size := number32(head[:])
	if size < 4 || size > mostBytes || number32(head[4:]) != correlation {
		return nil, fmt.Errorf("response %d of %d bytes to request %d", number32(head[4:]), size, key)
	}
	answer := make([]byte, size-4)
	_, err := io.ReadFull(w.reader, answer)
	return answer, err
}

// push sends a payload that is not compressed.
func (w *wire) push(id [16]byte, subscription uint32, payload []byte) error {
	body := binary.BigEndian.AppendUint32(id[:], subscription)
	body = append(body, 0, 0) // not terminating, no compression
	body = binary.AppendUvarint(body, uint64(len(payload)+1))
	body = append(append(body, payload...), 0)
	answer, err := w.ask(pushTelemetry, 0, body)
	if err != nil {
		return err
	}
	// tagged fields of the header, throttle time, error
	if len(answer) < 1+4+2 {
		return io.ErrUnexpectedEOF
	}
	if code := number16(answer[5:]); code != 0 {
		return fmt.Errorf("PushTelemetry: error %d", code)
	}
	return nil
}

func appendString(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...)
}
