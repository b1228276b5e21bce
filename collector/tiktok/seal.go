package tiktok

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
)

// seal encrypts what is kept in the database by AES-256-GCM, under a key derived from the app's client secret: that one is
// needed for every exchange and stands in no database, so that a copy of the database alone opens nothing.
type seal struct {
	aead cipher.AEAD
	// of is what a sealed text belongs to: it opens nowhere else.
	of []byte
}

func newSeal(secret, source, account string) (seal, error) {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "reeltally source token", 32)
	if err != nil {
		return seal{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return seal{}, err
	}
	aead, err := cipher.NewGCM(block)
	return seal{aead, []byte(source + "\n" + account)}, err
}

func (s seal) close(c credentials) ([]byte, error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return s.aead.Seal(nonce, nonce, plain, s.of), nil
}

var errSealed = errors.New("the stored token was sealed with another client secret")

func (s seal) open(sealed []byte) (credentials, error) {
	if len(sealed) < s.aead.NonceSize() {
		return credentials{}, errSealed
	}
	plain, err := s.aead.Open(nil, sealed[:s.aead.NonceSize()], sealed[s.aead.NonceSize():], s.of)
	if err != nil {
		return credentials{}, errSealed
	}
	var c credentials
	if err := json.Unmarshal(plain, &c); err != nil {
		return credentials{}, errSealed
	}
	return c, nil
}
