package main

import "encoding/binary"

// The versions that current clients use: the gateway walks through their responses.
const (
	produceKey, produceVersion = 0, 13
	fetchKey, fetchVersion     = 1, 18
	metadataKey                = 3
	apiVersionsKey             = 18
)

type frame []byte

func (f frame) int8(value int) frame  { return append(f, byte(value)) }
func (f frame) int16(value int) frame { return binary.BigEndian.AppendUint16(f, uint16(value)) }
func (f frame) int32(value int) frame { return binary.BigEndian.AppendUint32(f, uint32(value)) }
func (f frame) int64(value int) frame { return binary.BigEndian.AppendUint64(f, uint64(value)) }

// uvarint is also the length of a compact string, bytes or array: the length plus one.
func (f frame) uvarint(value int) frame { return binary.AppendUvarint(f, uint64(value)) }
func (f frame) text(value string) frame { return append(f.uvarint(len(value)+1), value...) }

// zeros stands for an id of 16 bytes, or records.
func (f frame) zeros(count int) frame { return append(f, make([]byte, count)...) }

// sized writes the length of the frame into its first four bytes.
func (f frame) sized() frame {
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	return f
}

func header(key, version int) frame {
	f := frame{}.int32(0).int16(key).int16(version).int32(0)
	return append(f.int16(len("bench")), "bench\x00"...)
}

// records is one batch of one record whose content is of no interest.
func records(f frame, size int) frame {
	f = f.uvarint(size + 1)
	batch := frame{}.int64(0).int32(size - 12).int32(0).int8(2).int32(0).int16(0).int32(0).int64(0).int64(0)
	batch = batch.int64(-1).int16(-1).int32(-1).int32(1)
	return append(f, batch.zeros(size-len(batch))...)
}

// partitions opens an array of one topic with so many partitions, at most 126.
func (f frame) partitions(count int) frame { return f.uvarint(2).zeros(16).uvarint(count + 1) }

func produceRequest(partitions, size int) frame {
	f := header(produceKey, produceVersion).uvarint(0).int16(1).int32(1000).partitions(partitions)
	for index := range partitions {
		f = records(f.int32(index), size).int8(0)
	}
	return f.int8(0).int8(0).sized()
}

func produceResponse(partitions int) frame {
	f := frame{}.int32(0).int32(0).int8(0).partitions(partitions)
	for index := range partitions {
		f = f.int32(index).int16(0).int64(1).int64(-1).int64(0).uvarint(1).uvarint(0).int8(0)
	}
	return f.int8(0).int32(0).int8(0).sized()
}

// fetchRequest asks for so many bytes of each partition: its field max_bytes.
func fetchRequest(partitions, size int) frame {
	f := header(fetchKey, fetchVersion).int32(500).int32(1).int32(size).int8(0).int32(0).int32(-1)
	f = f.partitions(partitions)
	for index := range partitions {
		f = f.int32(index).int32(-1).int64(0).int32(-1).int64(-1).int32(size).int8(0)
	}
	return f.int8(0).uvarint(1).text("").int8(0).sized()
}

func fetchResponse(partitions, size int) frame {
	f := frame{}.int32(0).int32(0).int8(0).int32(0).int16(0).int32(0).partitions(partitions)
	for index := range partitions {
		f = f.int32(index).int16(0).int64(1).int64(1).int64(0).uvarint(0).int32(-1)
		f = records(f, size).int8(0)
	}
	return f.int8(0).int8(0).sized()
}

// kind is what a response depends on.
type kind struct{ key, partitions, size int }

const afterHeader = 4 + 10 + len("bench") + 1

// kindOf reads the fields of a request of this bench from its first 64 bytes.
func kindOf(head []byte) kind {
	k := kind{key: int(binary.BigEndian.Uint16(head[4:]))}
	switch k.key {
	case produceKey:
		k.partitions = int(head[afterHeader+1+2+4+1+16]) - 1
	case fetchKey:
		k.partitions = int(head[afterHeader+21+1+16]) - 1
		k.size = int(binary.BigEndian.Uint32(head[afterHeader+8:]))
	}
	return k
}

func apiVersionsResponse() frame {
	f := frame{}.int32(0).int32(0).int16(0).uvarint(5)
	for _, row := range [][3]int{
		{produceKey, 0, produceVersion}, {fetchKey, 4, fetchVersion}, {metadataKey, 9, 9}, {apiVersionsKey, 0, 4},
	} {
		f = f.int16(row[0]).int16(row[1]).int16(row[2]).int8(0)
	}
	return f.int32(0).int8(0).sized()
}

// metadataResponse names no broker: the gateway's own polls get it.
func metadataResponse() frame {
	f := frame{}.int32(0).int32(0).int8(0).int32(0).uvarint(1).text("bench").int32(-1)
	return f.uvarint(1).int32(0).int8(0).sized()
}
