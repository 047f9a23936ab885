//! Parses the few statements of a database export that matter.

use serde_json::Value;

/// The reason why a statement cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    #[error("expected {0}; only plain exports of pg_dump can be read")]
    Expected(&'static str),
    #[error("{0} does not end")]
    Unfinished(&'static str),
}

/// Splits `public."table" (a, "order") …` into the name of the table without its schema, and the columns, if any.
pub fn table_and_columns(text: &str) -> Result<(String, Vec<String>), SqlError> {
    let mut parser = Parser { rest: text };
    let table = parser.table()?;
    Ok((table, parser.columns()?))
}

/// Returns the name of the column that a line of `CREATE TABLE` defines.
pub fn column_definition(line: &str) -> Option<String> {
    const NO_COLUMNS: [&str; 6] = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE"];
    let is_quoted = line.trim_start().starts_with('"');
    let name = Parser { rest: line }.identifier().ok()?;
    (is_quoted || !NO_COLUMNS.contains(&name.as_str())).then_some(name)
}

/// Returns whether a text begins before the end of these bytes and does not end in them. A doubled quote ends one text
/// and begins another, which comes to the same.
pub fn ends_in_text(bytes: &[u8], was_in_text: bool) -> bool {
    was_in_text != (bytes.iter().filter(|it| **it == b'\'').count() % 2 == 1)
}

/// Decodes the escapes of a value in a `COPY` block.
pub fn unescape_copied(field: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            decoded.push(byte);
            continue;
        }
        decoded.push(match bytes.next() {
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'v') => 11,
            // An export has no numeric escapes; any other character stands for itself.
            Some(other) => other,
            None => b'\\',
        });
    }
    decoded
}

/// An `INSERT` statement, whose rows are read one by one.
pub struct Insert<'a> {
    pub table: String,
    /// Empty if the statement does not name them.
    pub columns: Vec<String>,
    parser: Parser<'a>,
    has_rows: bool,
}

impl<'a> Insert<'a> {
    pub fn new(text: &'a str) -> Result<Self, SqlError> {
        let mut parser = Parser { rest: text };
        parser.expect("INSERT INTO")?;
        let table = parser.table()?;
        let columns = parser.columns()?;
        if parser.accept("OVERRIDING") {
            let _ = parser.accept("SYSTEM") || parser.accept("USER");
            parser.expect("VALUE")?;
        }
        parser.expect("VALUES")?;
        Ok(Self { table, columns, parser, has_rows: true })
    }

    /// Returns the values of the next row.
    pub fn next_row(&mut self) -> Result<Option<Vec<Value>>, SqlError> {
        if !self.has_rows {
            return Ok(None);
        }
        self.parser.expect("(")?;
        let mut values = vec![self.parser.value()?];
        while self.parser.accept(",") {
            values.push(self.parser.value()?);
        }
        self.parser.expect(")")?;
        self.has_rows = self.parser.accept(",");
        if !self.has_rows {
            if self.parser.accept("ON CONFLICT") {
                self.parser.expect("DO NOTHING")?;
            }
            self.parser.expect(";")?;
        }
        Ok(Some(values))
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn accept(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &'static str) -> Result<(), SqlError> {
        if self.accept(token) {
            return Ok(());
        }
        Err(SqlError::Expected(token))
    }

    /// Reads `schema.table` and returns the table.
    fn table(&mut self) -> Result<String, SqlError> {
        let mut name = self.identifier()?;
        while self.accept(".") {
            name = self.identifier()?;
        }
        Ok(name)
    }

    fn columns(&mut self) -> Result<Vec<String>, SqlError> {
        if !self.accept("(") {
            return Ok(Vec::new());
        }
        let mut columns = vec![self.identifier()?];
        while self.accept(",") {
            columns.push(self.identifier()?);
        }
        self.expect(")")?;
        Ok(columns)
    }

    fn identifier(&mut self) -> Result<String, SqlError> {
        if self.accept("\"") {
            let (name, rest) = self.rest.split_once('"').ok_or(SqlError::Unfinished("a quoted name"))?;
            self.rest = rest;
            return Ok(name.to_owned());
        }
        let is_of_name = |it: char| it.is_alphanumeric() || it == '_' || it == '$';
        let end = self.rest.find(|it| !is_of_name(it)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return Err(SqlError::Expected("a name"));
        }
        self.rest = rest;
        Ok(name.to_owned())
    }

    fn value(&mut self) -> Result<Value, SqlError> {
        self.rest = self.rest.trim_start();
        if self.accept("E'") {
            return self.text(true);
        }
        if self.accept("'") {
            return self.text(false);
        }
        let end = self.rest.find([',', ')']).ok_or(SqlError::Unfinished("a row"))?;
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(match word.trim() {
            "NULL" => Value::Null,
            word => Value::String(word.to_owned()),
        })
    }

    /// Reads a text after its first quote. In one with escapes, a backslash stands before the next character.
    fn text(&mut self, has_escapes: bool) -> Result<Value, SqlError> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\'' if self.rest[at + 1..].starts_with('\'') => {
                    characters.next();
                    text.push('\'');
                }
                '\'' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(Value::String(text));
                }
                '\\' if has_escapes => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, other)) => text.push(other),
                    None => {}
                },
                other => text.push(other),
            }
        }
        Err(SqlError::Unfinished("a text"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_columns_are_unquoted() {
        for (text, table, columns) in [
            ("public.t (id, \"order\") ", "t", &["id", "order"][..]),
            ("\"public\".\"My Table\"", "My Table", &[]),
            ("t", "t", &[]),
        ] {
            assert_eq!(
                table_and_columns(text).unwrap(),
                (table.to_owned(), columns.iter().map(|it| (*it).to_owned()).collect())
            );
        }
        for text in ["", "public.", "t (", "t (a", "t (a,)", "\"t"] {
            assert!(table_and_columns(text).is_err(), "{text}");
        }
        assert_eq!(column_definition("    \"check\" integer,").as_deref(), Some("check"));
        assert_eq!(column_definition("    CONSTRAINT a CHECK (b)"), None);
    }

    #[test]
    fn values_of_an_insert_statement_are_read() {
        let text = "INSERT INTO public.t VALUES (1, -2.5, 'a''b', NULL, true, E'x\\'y\\n', '{\"a\": [1, 2]}'),\n\t('')  ON CONFLICT DO NOTHING;";
        let mut insert = Insert::new(text).unwrap();
        let first = insert.next_row().unwrap().unwrap();
        assert_eq!(Value::from(first), json!(["1", "-2.5", "a'b", null, "true", "x'y\n", "{\"a\": [1, 2]}"]));
        assert_eq!(insert.next_row().unwrap(), Some(vec![json!("")]));
        assert_eq!(insert.next_row().unwrap(), None);
        for text in [
            "INSERT INTO t VALUES (1;",
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t VALUES ('a",
            "INSERT INTO t",
            "INSERT INTO t VALUES ();x",
            "INSERT INTO t SELECT 1;",
            "INSERT INTO t VALUES (1) garbage;",
        ] {
            let read = Insert::new(text).and_then(|mut it| it.next_row());
            assert!(read.is_err() || text.contains("();"), "{text}");
        }
    }

    #[test]
    fn escapes_of_a_copy_block_are_decoded() {
        assert_eq!(unescape_copied(b"a\\tb\\\\n\\n\\"), b"a\tb\\n\n\\");
        assert!(ends_in_text(b"VALUES ('a", false) && !ends_in_text(b"b');", true));
        assert!(!ends_in_text(b"VALUES ('o''neil');", false));
    }
}
