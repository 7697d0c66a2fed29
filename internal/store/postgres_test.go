package store_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store/storetest"
	"agentsmith/internal/tools"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	bin, err := tools.Postgres()
	require.NoError(t, err)
	p := storetest.StartPostgres(t, bin)
	storetest.Run(t, func(t *testing.T) string { return p.URL(t) }, readsEverything)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, p *storetest.Postgres)
	}{
		{"MigratesFromEveryVersion", pgMigrates},
		{"ManyAtOnceMigrateOnce", pgMigratesOnce},
		{"RefusesATableSetOfANewerProgram", pgNewer},
		{"RefusesAnotherEncoding", pgEncoding},
		{"NoErrorAndNoLogHoldsThePassword", pgSecrets},
		{"SyncsEachCommit", pgSyncs},
		{"NoStatementReadsAWholeTable", pgPlans},
		{"LockedByAnotherBoxGivesUpInTime", pgLocked},
		{"AServerThatHangsHoldsNobodyUp", pgFrozen},
		{"ACommitWhoseAnswerIsLostIsNotRunAgain", pgUnknownCommit},
		{"ATransactionWhoseServerRestartsIsRunAgain", pgRestarted},
		{"KilledInTheMiddleOfWork", pgKilled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, p) })
	}
}

// readsEverything reads every row of every table and by every index.
func readsEverything(t *testing.T, url string) {
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'`)
	require.NoError(t, err)
	var tables []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		tables = append(tables, name)
	}
	require.NoError(t, rows.Err())
	require.Greater(t, len(tables), 10)
	for _, table := range tables {
		_, err := db.Exec(`REINDEX TABLE ` + table)
		require.NoError(t, err)
		_, err = db.Exec(`SELECT count(t::text) FROM ` + table + ` t`)
		require.NoError(t, err)
	}
}
