package agent

// SessionEnv makes the environment of an agent CLI that runs in a terminal instead of for
// one turn: the same as BuildEnv, with the same defaults.
func SessionEnv(environ, pass []string, home string) []string {
	return withDefaults(BuildEnv(environ, pass, home), home)
}
