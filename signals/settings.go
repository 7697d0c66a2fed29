package signals

import (
	"agentsmith/internal/config"
	"agentsmith/workflows"
)

// Settings are what a brain whose agents run on box decides by.
func Settings(cfg *config.Config, box string) workflows.Settings {
	return workflows.Settings{
		Box: box, IdleAfter: cfg.IdleAfter, TurnTimeout: cfg.Limits.TurnTimeout, SelfDriveHops: cfg.Limits.SelfDriveHops,
	}
}
