package server

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/google/uuid"
)

// webhookCipher encrypts the secrets of webhooks for the database with AES-256-GCM.
type webhookCipher struct{ aead cipher.AEAD }

// newWebhookCipher returns a webhookCipher. It derives its encryption key from serverKey.
func newWebhookCipher(serverKey []byte) (webhookCipher, error) {
	derived, err := hkdf.Key(sha256.New, serverKey, nil, "reeltally webhook secret", 32)
	if err != nil {
		return webhookCipher{}, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return webhookCipher{}, err
	}
	aead, err := cipher.NewGCM(block)
	return webhookCipher{aead}, err
}

// newSecret returns a new secret for a webhook, as text and encrypted. The encrypted secret can be decrypted only for the same organisation
// and webhook.
func (c webhookCipher) newSecret(org, webhook uuid.UUID) (secret string, encrypted []byte, err error) {
	random, nonce := make([]byte, 32), make([]byte, c.aead.NonceSize())
	if _, err := rand.Read(random); err != nil {
		return "", nil, err
	}
	if _, err := rand.Read(nonce); err != nil {
		return "", nil, err
	}
	secret = "whsec_" + base64.StdEncoding.EncodeToString(random)
	return secret, c.aead.Seal(nonce, nonce, []byte(secret), encryptionContext(org, webhook)), nil
}

var errWrongWebhookKey = errors.New("the stored secret was encrypted with another key")

// decryptSecret decrypts a webhook's secret that newSecret encrypted. It fails if the organisation, the webhook or the key differs from the one that
// was used for the encryption.
func (c webhookCipher) decryptSecret(org, webhook uuid.UUID, encrypted []byte) (string, error) {
	n := c.aead.NonceSize()
	if len(encrypted) < n {
		return "", errWrongWebhookKey
	}
	secret, err := c.aead.Open(nil, encrypted[:n], encrypted[n:], encryptionContext(org, webhook))
	if err != nil {
		return "", errWrongWebhookKey
	}
	return string(secret), nil
}

// encryptionContext returns additional data for the encryption of a secret. A secret can be
// decrypted only with the ids of its own organisation and webhook.
func encryptionContext(org, webhook uuid.UUID) []byte { return append(org[:], webhook[:]...) }
