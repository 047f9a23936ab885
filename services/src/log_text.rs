//! The fields of log lines as text, in which no name can end a line or change what a terminal shows.
//!
//! Names come from people, providers and plugins. A line break in one of them would make a second line, which looks like one of
//! the gateway.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::{MakeVisitor, VisitFmt, VisitOutput};
use tracing_subscriber::fmt::format::Writer;

/// Writes to another writer, with escapes for all characters that end a line, control a terminal or change the direction of
/// text.
pub(crate) struct Escaped<W>(pub(crate) W);

impl<W: Write> Write for Escaped<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, found)) = rest.char_indices().find(|it| is_escaped(it.1)) {
            self.0.write_str(&rest[..at])?;
            write!(self.0, "{}", found.escape_debug())?;
            rest = &rest[at + found.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

fn is_escaped(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Ends of lines and paragraphs.
            '\u{2028}' | '\u{2029}'
            // Marks, embeddings, overrides and isolates of directions.
            | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Characters without a width, and tags.
            | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Formats fields as `message name=value`, escaped.
pub(crate) struct EscapedFields;

/// Writes the fields of one line.
pub(crate) struct FieldWriter<'a> {
    writer: Writer<'a>,
    is_first: bool,
    result: fmt::Result,
}

impl<'a> MakeVisitor<Writer<'a>> for EscapedFields {
    type Visitor = FieldWriter<'a>;

    fn make_visitor(&self, writer: Writer<'a>) -> FieldWriter<'a> {
        FieldWriter { writer, is_first: true, result: Ok(()) }
    }
}

impl FieldWriter<'_> {
    fn write(&mut self, name: &str, value: &dyn fmt::Debug) -> fmt::Result {
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        if name != "message" {
            // In italics, where the output is a terminal.
            let (begin, end) =
                if self.writer.has_ansi_escapes() { ("\u{1b}[3m", "\u{1b}[0m") } else { ("", "") };
            write!(self.writer, "{begin}{}{end}=", name.trim_start_matches("r#"))?;
        }
        write!(Escaped(&mut self.writer), "{value:?}")
    }
}

impl Visit for FieldWriter<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            // Without quotation marks.
            "message" => self.record_debug(field, &format_args!("{value}")),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // The place in the code of another library, which the line has already.
        if self.result.is_ok() && !field.name().starts_with("log.") {
            self.result = self.write(field.name(), value);
        }
    }
}

impl VisitOutput<fmt::Result> for FieldWriter<'_> {
    fn finish(self) -> fmt::Result {
        self.result
    }
}

impl VisitFmt for FieldWriter<'_> {
    fn writer(&mut self) -> &mut dyn Write {
        &mut self.writer
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing::{info, info_span};
    use tracing_subscriber::fmt as lines;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns what the log has after `work`.
    fn logged(work: impl FnOnce()) -> String {
        let output = Output::default();
        let writer = output.clone();
        let layer = lines::layer()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .fmt_fields(EscapedFields);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let bytes = output.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn no_name_makes_a_second_line_or_controls_a_terminal() {
        for (name, shown) in [
            ("Home", "Home"),
            ("Fernsehen für Ümläüte 日本 🎬", "Fernsehen für Ümläüte 日本 🎬"),
            ("a\nINFO forged", "a\\nINFO forged"),
            ("a\r\nb", "a\\r\\nb"),
            ("a\tb\0", "a\\tb\\0"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("\u{9b}31m\u{85}\u{7f}", "\\u{9b}31m\\u{85}\\u{7f}"),
            ("a\u{2028}b\u{2029}c", "a\\u{2028}b\\u{2029}c"),
            ("\u{202e}txt.exe\u{2066}", "\\u{202e}txt.exe\\u{2066}"),
            ("\u{feff}a\u{200b}b\u{e0041}", "\\u{feff}a\\u{200b}b\\u{e0041}"),
        ] {
            let text = logged(|| info!(account = %name, "account \"{name}\" changed"));
            assert_eq!(text, format!(" INFO account \"{shown}\" changed account={shown}\n"));
            for text in [
                logged(|| info!(name, "of a text")),
                logged(|| info!(name = ?Some(name), "of a debug form")),
                logged(|| info!(error = &io::Error::other(name) as &dyn std::error::Error, "of an error")),
                logged(|| info_span!("work", name = %name).in_scope(|| info!("of a span"))),
                logged(|| info!("{name}")),
            ] {
                let line = text.strip_suffix('\n').unwrap();
                assert!(!line.chars().any(is_escaped), "{line:?}");
                assert!(line.contains(&shown[..1]), "{line:?}");
            }
        }
    }

    #[test]
    fn fields_follow_the_message_with_their_names() {
        let text = logged(|| info!(account.id = 7, r#type = "m3u", name = ?"a b", "imported"));
        assert_eq!(text, " INFO imported account.id=7 type=\"m3u\" name=\"a b\"\n");
    }
}
