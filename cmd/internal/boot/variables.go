package boot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Variables are the names of the environment variables of all programs. Each program accepts all of
// them, so that programs can share one file of variables.
var Variables = []string{
	"REELTALLY_APP_URL", "REELTALLY_DATABASE_READ_URL", "REELTALLY_DATABASE_URL", "REELTALLY_DATA_DIR", "REELTALLY_FACEBOOK_ACCESS_TOKEN", "REELTALLY_FACEBOOK_APP_SECRET",
	"REELTALLY_FACEBOOK_BASE_URL", "REELTALLY_FACEBOOK_PAGE_ID", "REELTALLY_FACEBOOK_REEL_METRIC", "REELTALLY_FACEBOOK_VIDEO_METRIC", "REELTALLY_FETCH_INTERVALS",
	"REELTALLY_INSTAGRAM_ACCESS_TOKEN", "REELTALLY_INSTAGRAM_ACCOUNT_ID", "REELTALLY_INSTAGRAM_APP_SECRET", "REELTALLY_INSTAGRAM_BASE_URL",
	"REELTALLY_LISTEN", "REELTALLY_LOGIN_FILE", "REELTALLY_LOG_LEVEL", "REELTALLY_MAX_COLLECTIONS", "REELTALLY_METRICS_LISTEN", "REELTALLY_MIGRATE_TOKEN", "REELTALLY_PREVIEW_ALLOWANCE",
	"REELTALLY_RATE_LIMITS", "REELTALLY_REDIS_URL", "REELTALLY_REQUEST_TIMEOUT", "REELTALLY_RETENTION_DAILY", "REELTALLY_RETENTION_WEEKLY", "REELTALLY_SANDBOX", "REELTALLY_SHORTLINK_BASE_URL", "REELTALLY_SHUTDOWN_DELAY", "REELTALLY_THUMBNAILS",
	"REELTALLY_THUMBNAIL_BASE_URL", "REELTALLY_TIER_LIMITS",
	"REELTALLY_TIKTOK_BASE_URL", "REELTALLY_TIKTOK_CLIENT_KEY", "REELTALLY_TIKTOK_CLIENT_SECRET", "REELTALLY_TIKTOK_REFRESH_TOKEN",
	"REELTALLY_TIKTOK_REQUESTS", "REELTALLY_TIKTOK_RESEARCH_BASE_URL", "REELTALLY_TIKTOK_RESEARCH_CLIENT_KEY",
	"REELTALLY_TIKTOK_RESEARCH_CLIENT_SECRET", "REELTALLY_TIKTOK_RESEARCH_RECORDS", "REELTALLY_TIKTOK_RESEARCH_REQUESTS",
	"REELTALLY_TOKEN", "REELTALLY_TRUSTED_PROXIES", "REELTALLY_URL", "REELTALLY_VENDOR", "REELTALLY_VENDOR_BASE_URL", "REELTALLY_VENDOR_KEY", "REELTALLY_WEBHOOK_ALLOW_PRIVATE", "REELTALLY_WEBHOOK_KEY", "REELTALLY_YOUTUBE_API_KEY",
	"REELTALLY_YOUTUBE_BASE_URL", "REELTALLY_YOUTUBE_STATS_UNITS", "REELTALLY_YOUTUBE_UNITS",
}

// otherVariables are environment variables that only the Docker Compose files use, or used in the past. The
// programs ignore them, so that one file can set the variables of both.
var otherVariables = []string{"REELTALLY_PORT", "REELTALLY_MEMORY", "REELTALLY_TOOL_MEMORY", "REELTALLY_POSTGRES_MEMORY",
	"REELTALLY_POSTGRES_IMAGE", "REELTALLY_GO_IMAGE", "REELTALLY_BUSYBOX_IMAGE",
	"REELTALLY_CITUS_IMAGE", "REELTALLY_CITUS_MEMORY", "REELTALLY_COORDINATOR_PORT"}

// testPrefixes are the prefixes of the environment variables that only tests read. Programs ignore variables with these prefixes.
var testPrefixes = []string{"REELTALLY_TEST_", "REELTALLY_FUZZ_"}

// checkVariables returns a UsageError for unknown variables whose names begin with REELTALLY_.
// Without this check, a mistyped variable would silently have no effect.
func checkVariables(environ []string) error {
	var faults []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "REELTALLY_") || slices.Contains(Variables, name) || slices.Contains(otherVariables, name) ||
			slices.ContainsFunc(testPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		nearest := slices.MinFunc(Variables, func(a, b string) int { return editDistance(name, a) - editDistance(name, b) })
		fault := fmt.Sprintf("unknown environment variable %s: the help of each program lists its variables", name)
		if editDistance(name, nearest) <= maxTypingErrors {
			fault = fmt.Sprintf("unknown environment variable %s: the most similar known one is %s", name, nearest)
		}
		faults = append(faults, fault)
	}
	if len(faults) == 0 {
		return nil
	}
	slices.Sort(faults)
	return UsageError{errors.New(strings.Join(faults, "\n"))}
}

// maxTypingErrors limits suggestions: the error for an unknown variable suggests a known variable if the edit distance between their names is at
// most maxTypingErrors.
const maxTypingErrors = 5

// editDistance returns how many characters must be inserted, deleted or replaced to turn a into b (Levenshtein distance).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
