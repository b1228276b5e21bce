package store

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/internal/db"
)

func TestMetricColumns_matchTheFieldsOfCountsAndSums(t *testing.T) {
	t.Parallel()
	var counts Counts
	var sums Sums
	// fieldName returns the name of the field for a column, such as "Views" for "views".
	fieldName := func(column string) string { return string(column[0]-'a'+'A') + column[1:] }
	// address returns the address of a field of a struct. The parameter s is a pointer to the struct.
	address := func(s any, field string) any {
		return reflect.ValueOf(s).Elem().FieldByName(field).Addr().Interface()
	}
	for i, column := range db.MetricNames("") {
		*counts.Fields()[i] = new(int64(i))
		require.Same(t, address(&counts, fieldName(column)), counts.Fields()[i], column)
		require.Same(t, *counts.Fields()[i], counts.All()[i], column)
		require.Same(t, address(&sums, fieldName(column)), sums.Fields()[i], column)
	}
}
