package orders

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

var readyLine = regexp.MustCompile(`listeners=PLAINTEXT://([^ ,]+).* control=(\S+)`)

// Host is a Kafka broker for tests.
type Host struct {
	Bootstrap string
	control   string
}

// StartHost starts a broker that stops at the end of the test.
func StartHost(t *testing.T, options ...string) *Host {
	t.Helper()
	command := exec.Command("odradek", append([]string{"serve", "--ephemeral"}, options...)...)
	command.Stderr = os.Stderr
	stdin, _ := command.StdinPipe() // closes if the test is killed; then the broker stops, too
	stdout, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		command.Wait()
	})
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	found := readyLine.FindStringSubmatch(line)
	if found == nil {
		t.Fatal("odradek has not started; its log on stderr says why")
	}
	return &Host{Bootstrap: found[1], control: found[2]}
}

// Call calls an operation of the control port and decodes its result.
func (h *Host) Call(t *testing.T, operation string, arguments map[string]any, result any) {
	t.Helper()
	body, _ := json.Marshal(arguments)
	response, err := http.Post(h.control+"/"+operation, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", operation, content, err)
	}
	if result != nil {
		if err := json.Unmarshal(content, result); err != nil {
			t.Fatal(err)
		}
	}
}
