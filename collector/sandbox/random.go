package sandbox

import "math"

// hashTexts returns a 64-bit hash of a seed and texts, based on FNV-1a.
func hashTexts(seed uint64, parts ...string) uint64 {
	h := uint64(14695981039346656037) ^ mixBits(seed)
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		// This separator makes the hashes of ("a", "bc") and ("ab", "c") differ.
		h = (h ^ 0x1f) * 1099511628211
	}
	// mixBits gives similar inputs very different hashes.
	return mixBits(h)
}

// mixBits is the finaliser of SplitMix64. It is a bijection in which every input bit affects all output bits.
func mixBits(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// rng is a deterministic random number generator. Most kinds of data have their own generator, so
// that a new kind does not change existing data.
type rng struct{ state uint64 }

// nextUint64 returns a random number of 64 bits.
func (d *rng) nextUint64() uint64 {
	d.state += 0x9e3779b97f4a7c15
	return mixBits(d.state)
}

// fraction returns a random number in [0, 1).
func (d *rng) fraction() float64 { return float64(d.nextUint64()>>11) / (1 << 53) }

// intBelow returns a random integer in [0, n).
func (d *rng) intBelow(n int) int { return int(d.nextUint64() % uint64(n)) }

// floatBetween returns a random number in [low, high), uniformly distributed.
func (d *rng) floatBetween(low, high float64) float64 { return low + (high-low)*d.fraction() }

// logUniform returns a random number from low to high. The logarithm of this number is uniformly distributed.
func (d *rng) logUniform(low, high float64) float64 {
	return low * math.Pow(high/low, d.fraction())
}

// normalFloat returns a random number in [-6, 6], nearly normally distributed with mean 0 and standard deviation 1.
func (d *rng) normalFloat() float64 {
	sum := -6.0
	for range 12 {
		sum += d.fraction()
	}
	return sum
}

func pickRandom[T any](d *rng, list []T) T { return list[d.intBelow(len(list))] }

// feistelRounds is the number of rounds of the Feistel network in encryptNumber and decryptNumber.
const feistelRounds = 6

// encryptNumber encrypts a number with a Feistel network. The result has the same size in bits. The
// size must be even. decryptNumber reverses encryptNumber.
func encryptNumber(x uint64, bits uint, key uint64) uint64 {
	half := bits / 2
	mask := uint64(1)<<half - 1
	left, right := x>>half&mask, x&mask
	for round := range uint64(feistelRounds) {
		left, right = right, left^(mixBits(key^round<<60^right)&mask)
	}
	return left<<half | right
}

func decryptNumber(x uint64, bits uint, key uint64) uint64 {
	half := bits / 2
	mask := uint64(1)<<half - 1
	left, right := x>>half&mask, x&mask
	for round := range uint64(feistelRounds) {
		left, right = right^(mixBits(key^(feistelRounds-1-round)<<60^left)&mask), left
	}
	return left<<half | right
}
