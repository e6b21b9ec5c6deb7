package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
)

const brokerBuffer = 256 << 10

// answer reads requests and sends responses of the right kind and size; the bytes of records are not looked at.
// Responses to requests that have arrived together leave together.
func answer(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReaderSize(connection, brokerBuffer)
	known := map[kind]frame{}
	ready := []byte{}
	for {
		length, err := reader.Peek(4)
		if err != nil {
			return
		}
		size := int(binary.BigEndian.Uint32(length))
		head, err := reader.Peek(min(4+size, 64))
		if err != nil {
			return
		}
		kind := kindOf(head)
		response := known[kind]
		if response == nil {
			response = responseTo(kind)
			if response == nil {
				return
			}
			known[kind] = response
		}
		copy(response[4:8], head[8:12])
		if _, err := reader.Discard(4 + size); err != nil {
			return
		}
		if len(response) > brokerBuffer {
			if _, err := connection.Write(ready); err != nil {
				return
			}
			ready = ready[:0]
			_, err = connection.Write(response)
		} else {
			ready = append(ready, response...)
			if reader.Buffered() == 0 || len(ready) > brokerBuffer {
				_, err = connection.Write(ready)
				ready = ready[:0]
			}
		}
		if err != nil && err != io.EOF {
			return
		}
	}
}

func responseTo(k kind) frame {
	switch k.key {
	case produceKey:
		return produceResponse(k.partitions)
	case fetchKey:
		return fetchResponse(k.partitions, k.size)
	case metadataKey:
		return metadataResponse()
	case apiVersionsKey:
		return apiVersionsResponse()
	}
	return nil
}
