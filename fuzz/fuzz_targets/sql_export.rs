//! Statements of a database export of any kind: nothing panics, and a text that is written in one is read back unchanged.
#![no_main]

use import_from::sql::{Insert, column_definition, ends_in_text, table_and_columns, unescape_copied};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok((table, columns)) = table_and_columns(&text) {
        assert!(table.len() + columns.iter().map(String::len).sum::<usize>() <= text.len());
    }
    if let Some(name) = column_definition(&text) {
        assert!(text.contains(&name));
    }
    if let Ok(mut insert) = Insert::new(&text) {
        let mut n_rows = 0;
        while let Ok(Some(row)) = insert.next_row() {
            assert!(!row.is_empty());
            n_rows += 1;
        }
        // Each row has at least two parentheses.
        assert!(2 * n_rows <= text.len());
    }
    assert!(unescape_copied(data).len() <= data.len());

    let quoted = text.replace('\'', "''");
    let statement = format!("INSERT INTO public.t (a, b) VALUES ('{quoted}', NULL);");
    assert!(!ends_in_text(statement.as_bytes(), false));
    let mut insert = Insert::new(&statement).expect("a statement of our own");
    let row = insert.next_row().expect("a row of our own").expect("one row");
    assert_eq!((row[0].as_str(), row[1].is_null()), (Some(text.as_ref()), true));
    assert_eq!(insert.next_row(), Ok(None));
    let copied = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r");
    assert_eq!(unescape_copied(copied.as_bytes()), text.as_bytes());
});
