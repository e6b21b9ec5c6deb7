// Runs clients of franz-go in one process, which obey the lines of its standard input.
//
// "start NAME key=value ..." starts one, "set NAME key=value ..." changes keys of a running one, and "close NAME" closes it as its
// application would: a producer flushes first. At the end of the input, all are closed. Keys: role (consumer, producer), topic, group;
// rate in records per second, 0 for an idle producer; size of a record in bytes; work_ms for each record; and some settings as Kafka's
// Java client calls them. For each client a line says "NAME ready" and "NAME closed", or "NAME failed ERROR".
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

const (
	poll     = 200 * time.Millisecond
	patience = 10 * time.Second
)

type member struct {
	name     string
	settings sync.Map
	leaving  context.Context
	leave    context.CancelFunc
}

func newMember(name string) *member {
	leaving, leave := context.WithCancel(context.Background())
	made := &member{name: name, leaving: leaving, leave: leave}
	made.set([]string{"rate=20", "size=20", "work_ms=0"})
	return made
}

func (m *member) set(settings []string) {
	for _, each := range settings {
		key, value, _ := strings.Cut(each, "=")
		m.settings.Store(key, value)
	}
}

func (m *member) text(key string) string {
	value, _ := m.settings.Load(key)
	text, _ := value.(string)
	return text
}

func (m *member) number(key string) int {
	number, _ := strconv.Atoi(m.text(key))
	return number
}

func (m *member) rate() float64 {
	rate, _ := strconv.ParseFloat(m.text("rate"), 64)
	return rate
}

func (m *member) tell(state string) {
	fmt.Println(m.name, state)
}

// pause is false if the client has to leave.
func (m *member) pause(length time.Duration) bool {
	select {
	case <-m.leaving.Done():
		return false
	case <-time.After(length):
		return true
	}
}

func (m *member) options() []kgo.Opt {
	found := []kgo.Opt{kgo.SeedBrokers(m.text("bootstrap.servers")), kgo.ClientID(m.text("client.id"))}
	if session := m.number("session.timeout.ms"); session > 0 {
		found = append(found, kgo.SessionTimeout(time.Duration(session)*time.Millisecond),
			kgo.HeartbeatInterval(time.Duration(session)*time.Millisecond/4))
	}
	if size := m.number("max.request.size"); size > 0 {
		found = append(found, kgo.ProducerBatchMaxBytes(int32(size)), kgo.BrokerMaxWriteBytes(int32(2*size)))
	}
	if user := m.text("sasl.username"); user != "" {
		found = append(found, kgo.SASL(plain.Auth{User: user, Pass: m.text("sasl.password")}.AsMechanism()))
	}
	return found
}

func (m *member) consume() error {
	client, err := kgo.NewClient(append(m.options(), kgo.ConsumeTopics(m.text("topic")), kgo.ConsumerGroup(m.text("group")),
		kgo.AutoCommitInterval(time.Second))...)
	if err != nil {
		return err
	}
	defer client.Close()
	m.tell("ready")
	for m.leaving.Err() == nil {
		fetches := client.PollRecords(m.leaving, 500)
		for range fetches.NumRecords() {
			if work := m.number("work_ms"); work > 0 {
				m.pause(time.Duration(work) * time.Millisecond)
			}
		}
	}
	return nil
}

func (m *member) produce() error {
	client, err := kgo.NewClient(append(m.options(), kgo.DefaultProduceTopic(m.text("topic")))...)
	if err != nil {
		return err
	}
	defer client.Close()
	m.tell("ready")
	for {
		length := poll
		if rate := m.rate(); rate > 0 {
			client.TryProduce(context.Background(), kgo.SliceRecord(make([]byte, m.number("size"))), nil)
			length = time.Duration(float64(time.Second) / rate)
		}
		if !m.pause(length) {
			break
		}
	}
	limited, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return client.Flush(limited)
}

func (m *member) run() {
	work := m.consume
	if m.text("role") == "producer" {
		work = m.produce
	}
	if err := work(); err != nil {
		m.tell("failed " + err.Error())
		return
	}
	m.tell("closed")
}

func main() {
	members := map[string]*member{}
	var running sync.WaitGroup
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch name := words[1]; words[0] {
		case "start":
			members[name] = newMember(name)
			members[name].set(words[2:])
			running.Go(members[name].run)
		case "set":
			members[name].set(words[2:])
		case "close":
			members[name].leave()
		}
	}
	for _, each := range members {
		each.leave()
	}
	running.Wait()
}
