package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// composeFile is the part of a compose file that the tests read.
type composeFile struct {
	Services map[string]composeService
	Volumes  map[string]any
}

// composeService is a service of a compose file.
type composeService struct {
	Image       string
	Command     []string
	Entrypoint  []string
	Environment map[string]string
	EnvFile     []string `yaml:"env_file"`
	Profiles    []string
	Ports       []string
	Volumes     []string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	MemLimit    string   `yaml:"mem_limit"`
	Restart     string
	Healthcheck *struct{ Test []string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

// readCompose reads a compose file of the repository.
func readCompose(t *testing.T, name string) (composeFile, string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	require.NoError(t, err)
	var file composeFile
	require.NoError(t, yaml.Unmarshal(text, &file))
	return file, string(text)
}

// composeVariable matches a variable in a compose file, such as ${REELTALLY_PORT:-8080}.
var composeVariable = regexp.MustCompile(`\$\{(\w+)`)

// pinnedImage matches the name of an image with an exact version, such as postgres:17.5. The image can also be the default of a variable, such as
// ${IMAGE:-postgres:17.5}.
var pinnedImage = regexp.MustCompile(`^(\$\{\w+:-)?[a-z]+(/[a-z]+)?:\d+\.\d+[.\d]*\}?$`)

func TestCompose_servicesHaveLimitsAndStartInOrder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docker-compose.yml", "docker-compose.citus.yml", "docker-compose.demo.yml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, text := readCompose(t, name)
			for service, s := range file.Services {
				require.True(t, s.ReadOnly, service)
				require.Equal(t, []string{"ALL"}, s.CapDrop, service)
				require.NotEmpty(t, s.MemLimit, service)
				if s.Image != "reeltally" {
					require.Regexp(t, pinnedImage, s.Image, service)
				}
				for _, port := range s.Ports {
					require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "the service %s must not publish ports on other addresses than 127.0.0.1, but has %s", service, port)
				}
				for _, volume := range s.Volumes {
					source, _, _ := strings.Cut(volume, ":")
					require.Contains(t, file.Volumes, source, service)
				}
				for other, when := range s.DependsOn {
					require.Contains(t, file.Services, other, service)
					switch when.Condition {
					case "service_healthy":
						require.NotNil(t, file.Services[other].Healthcheck, "the service %s must have a health check, because %s waits for it", other, service)
					case "service_completed_successfully":
						require.Equal(t, "no", file.Services[other].Restart, "the service %s must not restart, because %s waits for its end", other, service)
					default:
						require.Fail(t, "unknown condition", "%s: %s", service, when.Condition)
					}
				}
			}
			_, settings, _ := strings.Cut(text, "\n# The settings are in the file .env")
			settings, _, _ = strings.Cut(settings, "\nname:")
			_, main := readCompose(t, "docker-compose.yml")
			for _, m := range composeVariable.FindAllStringSubmatch(text, -1) {
				require.True(t, strings.Contains(settings, m[1]+"=") || strings.Contains(main, "#   "+m[1]+"="), "the comment at the top of the file must describe the variable %s", m[1])
			}
		})
	}
}

// Every setting in the file .env reaches the programs, except a setting that the compose file itself sets.
func TestCompose_programsGetEverySettingOfTheFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docker-compose.yml", "docker-compose.citus.yml"} {
		file, _ := readCompose(t, name)
		for _, program := range []string{"server", "collector", "reeltally"} {
			require.Equal(t, []string{".env"}, file.Services[program].EnvFile, "%s: %s", name, program)
			for variable, value := range file.Services[program].Environment {
				require.NotEqual(t, "${"+variable+":-}", value, "%s: %s has %s twice", name, program, variable)
			}
		}
	}
}

// The demo's compose file has one service and requires no settings. The test runs this service with
// a temporary folder instead of /data.
func TestCompose_demoStartsWithoutSettings(t *testing.T) {
	t.Parallel()
	file, text := readCompose(t, "docker-compose.demo.yml")
	require.NotContains(t, text, ":?", "the file must have a default for each variable")
	require.NotContains(t, text, "env_file")
	require.Len(t, file.Services, 1)
	require.Empty(t, file.Volumes)
	demo := file.Services["demo"]
	require.Equal(t, []string{"up"}, demo.Command)
	require.Equal(t, "sqlite:/data/demo.db", demo.Environment["REELTALLY_DATABASE_URL"])
	env := map[string]string{}
	for name, value := range demo.Environment {
		env[name] = strings.NewReplacer("/data/", t.TempDir()+"/", "${REELTALLY_PORT:-8080}", "8080").Replace(value)
	}
	u := startReelTally(t, env)
	require.Contains(t, u.Stdout.String(), "MADE UP by the sandbox")
	require.Contains(t, u.Stdout.String(), env["REELTALLY_APP_URL"]+"/login/")
	require.Contains(t, getText(t, u.base+"/videos?limit=1", u.token), `"data":[{`)
	require.Zero(t, u.Stop())
}

// The compose file of Citus has a coordinator and two workers. The programs start after the tables were divided between the workers.
func TestCompose_startsASmallCluster(t *testing.T) {
	t.Parallel()
	file, _ := readCompose(t, "docker-compose.citus.yml")
	require.Subset(t, file.Services["migrate"].Command, []string{"migrate", "--citus"})
	require.Contains(t, file.Services["migrate"].DependsOn, "cluster")
	for _, program := range []string{"server", "collector", "reeltally"} {
		require.Contains(t, file.Services[program].DependsOn, "migrate")
		require.Contains(t, file.Services[program].Environment["REELTALLY_DATABASE_URL"], "@coordinator:5432/")
	}
	setUp := strings.Join(file.Services["cluster"].Command, "\n")
	nodes := []string{"coordinator", "worker-1", "worker-2"}
	for _, node := range nodes {
		require.Contains(t, file.Services["cluster"].DependsOn, node)
		require.Contains(t, setUp, "'"+node+"', 5432")
		require.Equal(t, file.Services["cluster"].Image, file.Services[node].Image)
		require.True(t, slices.Contains(file.Services[node].Command, "shared_preload_libraries=citus"))
		require.Equal(t, []string{node + ":/var/lib/postgresql/data"}, file.Services[node].Volumes)
	}
	require.Len(t, file.Services, len(nodes)+len([]string{"cluster", "migrate", "server", "collector", "reeltally"}))
}
