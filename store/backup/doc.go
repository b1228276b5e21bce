// Package backup writes a whole database to a file and restores it, on the same engine or on the other engine.
//
// [Write] writes the data as they are at one moment, even if other programs change the database while it runs. [Restore] reads the file
// into an empty database, in one transaction. [Check] reads a file and changes nothing.
//
// A backup is text, compressed with Zstandard. Each line is a JSON value:
//
//   - The first line is the [Header].
//   - A line such as {"table":"videos","columns":[{"name":"id","kind":"text"},…]} begins a table. Its rows follow, each as an array with a
//     value for each column, in the order of the primary key. The line {"end":"videos","rows":2} ends the table.
//   - The last line is {"end":"backup","rows":7,"sha256":"…"}. The checksum is that of all lines between the first and the last line, each
//     with its line feed. Two databases with the same content have the same checksum, even on different engines.
//
// In a row, ids and days are texts, integers and floating-point numbers are numbers, and bytes are texts in Base64. null is NULL.
//
//   - write.go: Write
//   - read.go: the reader of the format, and Check
//   - restore.go: Restore
package backup
