// Produces numbered records with franz-go, once per codec, and reads them back with a consumer group.
//
// Usage: franz [OPTIONS] BOOTSTRAP TOPIC RECORDS CLIENT_ID
//
// The options are about TLS and a login; see security.go.
//
// Output: "produced=N", then "read=N" where N counts records that arrived in order. The client pushes its metrics
// (KIP-714) as franz-go does by default, and sends a last push when it is closed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const timeout = 60 * time.Second

func main() {
	flag.Parse()
	if flag.NArg() != 4 {
		fmt.Fprintln(os.Stderr, "usage: franz [OPTIONS] BOOTSTRAP TOPIC RECORDS CLIENT_ID")
		flag.PrintDefaults()
		os.Exit(2)
	}
	records, err := strconv.Atoi(flag.Arg(2))
	if err == nil {
		err = run(flag.Arg(0), flag.Arg(1), records, flag.Arg(3))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(bootstrap, topic string, records int, clientID string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	broker, err := security()
	if err != nil {
		return err
	}
	broker = append(broker, kgo.SeedBrokers(bootstrap))
	if err := ping(ctx, broker); err != nil {
		return err
	}
	codecs := []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
	}
	for round, codec := range codecs {
		if err := produce(ctx, broker, topic, round*records, records, codec); err != nil {
			return fmt.Errorf("produce: %w", err)
		}
	}
	fmt.Printf("produced=%d\n", len(codecs)*records)
	read, err := consume(ctx, broker, topic, len(codecs)*records, clientID)
	fmt.Printf("read=%d\n", read)
	return err
}

// ping connects once: other requests are sent again and again if the broker refuses the connection.
func ping(ctx context.Context, broker []kgo.Opt) error {
	client, err := kgo.NewClient(broker...)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}

func produce(ctx context.Context, broker []kgo.Opt, topic string, first, count int, codec kgo.CompressionCodec) error {
	client, err := kgo.NewClient(append(broker,
		kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation(),
		kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)...)
	if err != nil {
		return err
	}
	defer client.Close()
	batch := make([]*kgo.Record, count)
	for i := range batch {
		batch[i] = kgo.StringRecord(strconv.Itoa(first + i))
	}
	return client.ProduceSync(ctx, batch...).FirstErr()
}

func consume(ctx context.Context, broker []kgo.Opt, topic string, count int, clientID string) (int, error) {
	client, err := kgo.NewClient(append(broker,
		kgo.ConsumeTopics(topic), kgo.ConsumerGroup(clientID), kgo.ClientID(clientID),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)...)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	read := 0
	for read < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return read, err
		}
		for _, record := range fetches.Records() {
			if string(record.Value) != strconv.Itoa(read) {
				return read, fmt.Errorf("read record %s, expected %d", record.Value, read)
			}
			read++
		}
	}
	return read, client.CommitUncommittedOffsets(ctx)
}
