package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

const mechanism = "SCRAM-SHA-256"

// login is that of one user, SCRAM-SHA-256 (RFC 5802). Clients of a real fleet salt their passwords each on its
// own machine; here one does it for all.
type login struct {
	user, password string

	sync.Mutex
	salted     string // the salt and the iterations of the keys
	clientKey  []byte
	serverKey  []byte
	storedHash [sha256.Size]byte
}

func (l *login) run(w *wire) error {
	answer, err := w.ask(saslHandshake, 1, appendString(nil, mechanism))
	if err != nil {
		return err
	}
	if len(answer) < 2 || number16(answer) != 0 {
		return errors.New("SaslHandshake: refused")
	}
	random := make([]byte, 18)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	nonce := base64.StdEncoding.EncodeToString(random)
	first := "n=" + l.user + ",r=" + nonce
	challenge, err := authenticate(w, "n,,"+first)
	if err != nil {
		return err
	}
	parts := strings.Split(challenge, ",")
	if len(parts) < 3 || !strings.HasPrefix(parts[0], "r="+nonce) {
		return errors.New("SCRAM: a challenge of another client")
	}
	if err := l.salt(parts[1], parts[2]); err != nil {
		return err
	}
	withoutProof := "c=biws," + parts[0]
	message := first + "," + challenge + "," + withoutProof
	proof := mac(l.storedHash[:], message)
	for i := range proof {
		proof[i] ^= l.clientKey[i]
	}
	last, err := authenticate(w, withoutProof+",p="+base64.StdEncoding.EncodeToString(proof))
	if err != nil {
		return err
	}
	if last != "v="+base64.StdEncoding.EncodeToString(mac(l.serverKey, message)) {
		return errors.New("SCRAM: the server does not know the password")
	}
	return nil
}

// salt makes the keys, unless they are those of this salt.
func (l *login) salt(salt, iterations string) error {
	l.Lock()
	defer l.Unlock()
	if l.salted == salt+iterations {
		return nil
	}
	if l.salted != "" {
		return errors.New("SCRAM: one user with two salts")
	}
	bytesOf, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(salt, "s="))
	if err != nil {
		return err
	}
	times, err := strconv.Atoi(strings.TrimPrefix(iterations, "i="))
	if err != nil {
		return err
	}
	block := mac([]byte(l.password), string(binary.BigEndian.AppendUint32(bytesOf, 1)))
	key := bytes.Clone(block)
	for range times - 1 {
		block = mac([]byte(l.password), string(block))
		for i := range key {
			key[i] ^= block[i]
		}
	}
	l.clientKey, l.serverKey = mac(key, "Client Key"), mac(key, "Server Key")
	l.storedHash, l.salted = sha256.Sum256(l.clientKey), salt+iterations
	return nil
}

// authenticate passes a token, and returns that of the server.
func authenticate(w *wire, token string) (string, error) {
	body := binary.BigEndian.AppendUint32(nil, uint32(len(token)))
	answer, err := w.ask(saslAuthenticate, 1, append(body, token...))
	if err != nil {
		return "", err
	}
	if len(answer) < 2 {
		return "", io.ErrUnexpectedEOF
	}
	if code := number16(answer); code != 0 {
		return "", fmt.Errorf("SaslAuthenticate: error %d", code)
	}
	rest := answer[2:]
	if len(rest) < 2 {
		return "", io.ErrUnexpectedEOF
	}
	message := 2 + max(0, int(int16(number16(rest)))) // -1 is null
	if len(rest) < message+4 {
		return "", io.ErrUnexpectedEOF
	}
	if rest = rest[message:]; len(rest) < 4+int(number32(rest)) {
		return "", io.ErrUnexpectedEOF
	}
	return string(rest[4 : 4+number32(rest)]), nil
}

func mac(key []byte, text string) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(text))
	return sum.Sum(nil)
}
