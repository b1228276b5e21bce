package sandbox

import "math"

// keyed hashes parts under a seed: FNV-1a over the parts, each ended by a separator so that ("ab","c") and ("a","bc")
// differ, then mixed so that near inputs give far outputs.
func keyed(seed uint64, parts ...string) uint64 {
	h := uint64(14695981039346656037) ^ mix(seed)
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		h = (h ^ 0x1f) * 1099511628211
	}
	return mix(h)
}

// mix is the finaliser of SplitMix64: a bijection that spreads every input bit over the whole word.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// dice is a deterministic stream of values. Every facet of a thing (its title, its curve, its category) rolls dice of its
// own, so that a new facet never changes an old one.
type dice struct{ state uint64 }

func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	return mix(d.state)
}

// unit is in [0, 1).
func (d *dice) unit() float64 { return float64(d.next()>>11) / (1 << 53) }

// below is in [0, n).
func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

func (d *dice) between(low, high float64) float64 { return low + (high-low)*d.unit() }

// logBetween spreads evenly over orders of magnitude.
func (d *dice) logBetween(low, high float64) float64 {
	return low * math.Pow(high/low, d.unit())
}

// normal has mean 0 and deviation 1, and never leaves [-6, 6].
func (d *dice) normal() float64 {
	sum := -6.0
	for range 12 {
		sum += d.unit()
	}
	return sum
}

func pick[T any](d *dice, from []T) T { return from[d.below(len(from))] }

const scrambleRounds = 6

// scramble permutes the numbers of an even count of bits under a key: a Feistel network, so that unscramble undoes it.
// Ids are scrambled numbers: they look random and still say which account they belong to.
func scramble(x uint64, bits uint, key uint64) uint64 {
	half := bits / 2
	mask := uint64(1)<<half - 1
	left, right := x>>half&mask, x&mask
	for round := range uint64(scrambleRounds) {
		left, right = right, left^(mix(key^round<<60^right)&mask)
	}
	return left<<half | right
}

func unscramble(x uint64, bits uint, key uint64) uint64 {
	half := bits / 2
	mask := uint64(1)<<half - 1
	left, right := x>>half&mask, x&mask
	for round := range uint64(scrambleRounds) {
		left, right = right^(mix(key^(scrambleRounds-1-round)<<60^left)&mask), left
	}
	return left<<half | right
}
