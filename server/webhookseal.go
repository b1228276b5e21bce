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

// webhookSeal encrypts the secrets of webhooks for the database with AES-256-GCM.
type webhookSeal struct{ aead cipher.AEAD }

// newWebhookSeal returns a webhookSeal. It derives its encryption key from serverKey.
func newWebhookSeal(serverKey []byte) (webhookSeal, error) {
	derived, err := hkdf.Key(sha256.New, serverKey, nil, "reeltally webhook secret", 32)
	if err != nil {
		return webhookSeal{}, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return webhookSeal{}, err
	}
	aead, err := cipher.NewGCM(block)
	return webhookSeal{aead}, err
}

// newSecret returns a new secret for a webhook, as text and encrypted. The encrypted secret can be decrypted only for the same organisation
// and webhook.
func (s webhookSeal) newSecret(org, webhook uuid.UUID) (secret string, sealed []byte, err error) {
	random, nonce := make([]byte, 32), make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(random); err != nil {
		return "", nil, err
	}
	if _, err := rand.Read(nonce); err != nil {
		return "", nil, err
	}
	secret = "whsec_" + base64.StdEncoding.EncodeToString(random)
	return secret, s.aead.Seal(nonce, nonce, []byte(secret), encryptionContext(org, webhook)), nil
}

var errWebhookSealed = errors.New("the stored secret was encrypted with another key")

// decryptSecret decrypts a webhook's secret that newSecret encrypted. It fails if the organisation, the webhook or the key differs from the one that
// was used for the encryption.
func (s webhookSeal) decryptSecret(org, webhook uuid.UUID, sealed []byte) (string, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return "", errWebhookSealed
	}
	secret, err := s.aead.Open(nil, sealed[:n], sealed[n:], encryptionContext(org, webhook))
	if err != nil {
		return "", errWebhookSealed
	}
	return string(secret), nil
}

// encryptionContext returns additional data for the encryption of a secret. A secret can be
// decrypted only with the ids of its own organisation and webhook.
func encryptionContext(org, webhook uuid.UUID) []byte { return append(org[:], webhook[:]...) }
