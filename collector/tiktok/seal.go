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

// seal encrypts credentials for the database with AES-256-GCM. The key is derived from the app's
// client secret, which is not stored in the database.
type seal struct {
	aead cipher.AEAD
	// context identifies the source and the account of the credentials. The encrypted credentials
	// cannot be decrypted for another account.
	context []byte
}

// newSeal returns a seal whose encryption key is derived from the client secret. Encrypted credentials can be decrypted only with the same
// source and account.
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

func (s seal) encrypt(c credentials) ([]byte, error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return s.aead.Seal(nonce, nonce, plain, s.context), nil
}

var errSealed = errors.New("the stored token was encrypted with another client secret")

// decrypt decrypts the result of encrypt. It returns errSealed if the credentials were encrypted with another client secret or for another
// account.
func (s seal) decrypt(sealed []byte) (credentials, error) {
	if len(sealed) < s.aead.NonceSize() {
		return credentials{}, errSealed
	}
	plain, err := s.aead.Open(nil, sealed[:s.aead.NonceSize()], sealed[s.aead.NonceSize():], s.context)
	if err != nil {
		return credentials{}, errSealed
	}
	var c credentials
	if err := json.Unmarshal(plain, &c); err != nil {
		return credentials{}, errSealed
	}
	return c, nil
}
