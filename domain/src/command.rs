//! The command of a stream profile: a program that reads a stream instead of the gateway.
//!
//! No shell is involved. The text is split into words before values are inserted, so an address always stays one
//! argument.

use std::fmt;

use crate::secret::Secret;

/// A placeholder in the parameters of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placeholder {
    StreamUrl,
    UserAgent,
    ChannelId,
    Protocols,
}

impl Placeholder {
    const ALL: [(&'static str, Self); 4] = [
        ("{streamUrl}", Self::StreamUrl),
        ("{userAgent}", Self::UserAgent),
        ("{channelId}", Self::ChannelId),
        ("{protocols}", Self::Protocols),
    ];
}

/// A program and its arguments with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTemplate {
    program: String,
    arguments: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(Placeholder),
}

/// The values for the placeholders.
#[derive(Clone, Copy)]
pub struct CommandValues<'a> {
    /// For `{streamUrl}`.
    pub stream_url: &'a str,
    /// For `{userAgent}`. If `None`, an argument that consists of this placeholder is omitted together with the option
    /// before it.
    pub user_agent: Option<&'a str>,
    /// For `{channelId}`.
    pub channel_id: &'a str,
    /// For `{protocols}`: names of ffmpeg's protocols, separated by commas.
    pub protocols: &'a str,
}

/// The reason why a command is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct CommandTemplateError {
    /// `command` or `parameters`.
    pub field: &'static str,
    /// A sentence for the admin.
    pub reason: String,
}

impl CommandTemplate {
    /// Parses the program's name or absolute path, which is not split, and its parameters, which are split as by a
    /// shell, with single quotes, double quotes and backslashes.
    ///
    /// # Errors
    /// If the program is missing, a quote is not closed, or a `{word}` is not a placeholder.
    pub fn new(command: &str, parameters: &str) -> Result<Self, CommandTemplateError> {
        let wrong = |field, reason: &str| CommandTemplateError { field, reason: reason.to_owned() };
        let program = command.trim();
        if program.is_empty() {
            return Err(wrong("command", "A program is required."));
        }
        if program.contains('\0') || (program.contains('/') && !program.starts_with('/')) {
            return Err(wrong("command", "This is neither the name of a program nor an absolute path."));
        }
        let words = split(parameters).map_err(|reason| wrong("parameters", reason))?;
        let arguments = words.iter().map(|it| pieces(it)).collect::<Result<_, _>>();
        let arguments = arguments.map_err(|reason| CommandTemplateError { field: "parameters", reason })?;
        Ok(Self { program: program.to_owned(), arguments })
    }

    /// Returns the command with all values inserted. Placeholders within values are not replaced.
    pub fn fill(&self, values: CommandValues<'_>) -> Argv {
        let mut arguments: Vec<String> = Vec::with_capacity(self.arguments.len());
        for pieces in &self.arguments {
            if values.user_agent.is_none() && pieces[..] == [Piece::Placeholder(Placeholder::UserAgent)] {
                arguments.pop_if(|it| it.starts_with('-'));
                continue;
            }
            let text = pieces.iter().map(|it| match it {
                Piece::Text(text) => text.as_str(),
                Piece::Placeholder(Placeholder::StreamUrl) => values.stream_url,
                Piece::Placeholder(Placeholder::UserAgent) => values.user_agent.unwrap_or_default(),
                Piece::Placeholder(Placeholder::ChannelId) => values.channel_id,
                Piece::Placeholder(Placeholder::Protocols) => values.protocols,
            });
            arguments.push(text.collect());
        }
        Argv { program: self.program.clone(), arguments, input: None }
    }
}

/// A command ready to run. It prints without its arguments, because they contain addresses.
#[derive(Clone, PartialEq, Eq)]
pub struct Argv {
    /// A name to look up in `PATH`, or an absolute path.
    pub program: String,
    pub arguments: Vec<String>,
    /// Text for the standard input of the program: values that other programs on the machine must not see.
    pub input: Option<Secret>,
}

impl Argv {
    /// Returns whether it is ffmpeg with exactly one input, so that options for the input can be added.
    pub(crate) fn is_ffmpeg_with_input(&self) -> bool {
        let name = self.program.rsplit('/').next().unwrap_or_default();
        name == "ffmpeg" && self.arguments.iter().filter(|it| *it == "-i").count() == 1
    }

    /// Returns the command with further options for its input: in front of `-i`, as ffmpeg expects them.
    pub(crate) fn with_input_options(mut self, options: Vec<String>) -> Self {
        if let Some(at) = self.arguments.iter().position(|it| it == "-i") {
            self.arguments.splice(at..at, options);
        }
        self
    }

    /// Returns the command with the picture and the sound of one programme of its input in place of those of all. Tracks that
    /// are announced and never sent are left out: ffmpeg refuses to write them.
    pub(crate) fn with_program(mut self, number: u32) -> Self {
        for it in &mut self.arguments {
            match it.as_str() {
                "0:v:0?" => *it = format!("0:p:{number}:v:u?"),
                "0:a?" => *it = format!("0:p:{number}:a:u?"),
                _ => {}
            }
        }
        self
    }
}

impl fmt::Debug for Argv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Argv({} and {} arguments)", self.program, self.arguments.len())
    }
}

/// Splits a text into words as a shell does, without any other expansion.
fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    // `None` between words; quotes create a word even if they are empty.
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(it) = chars.next() {
        match it {
            '\0' => return Err("This contains a null character, which no argument can contain."),
            it if it.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some('\0') | None => return Err("A single quote is not closed."),
                        Some(it) => word.push(it),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(it @ ('"' | '\\' | '$' | '`')) => word.push(it),
                            Some('\n') => {}
                            Some(it) => word.extend(['\\', it]),
                            None => return Err("A double quote is not closed."),
                        },
                        Some('\0') | None => return Err("A double quote is not closed."),
                        Some(it) => word.push(it),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\0') | None => return Err("Nothing follows the backslash at the end."),
                Some('\n') => {}
                Some(it) => word.get_or_insert_default().push(it),
            },
            it => word.get_or_insert_default().push(it),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Splits a word into texts and placeholders.
fn pieces(word: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        if let Some((name, token)) = Placeholder::ALL.into_iter().find(|it| rest.starts_with(it.0)) {
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            pieces.push(Piece::Placeholder(token));
            rest = &rest[name.len()..];
            continue;
        }
        if let Some(name) = looks_like_placeholder(rest) {
            let known = Placeholder::ALL.map(|it| it.0).join(", ");
            return Err(format!("{name} is not known; use one of {known}."));
        }
        text.push(first);
        rest = &rest[first.len_utf8()..];
    }
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// Returns the word in braces at the beginning of a text. Other braces, as in JSON, are text.
fn looks_like_placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?;
    let end = name.find(|it: char| !it.is_ascii_alphanumeric() && it != '_')?;
    (end > 0 && name[end..].starts_with('}')).then(|| &text[..end + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(parameters: &str, stream_url: &str, user_agent: Option<&str>) -> Vec<String> {
        let values = CommandValues { stream_url, user_agent, channel_id: "c1", protocols: "http,tcp" };
        CommandTemplate::new("p", parameters).unwrap().fill(values).arguments
    }

    #[test]
    fn parameters_are_split_as_a_shell_would_split_them() {
        let check = |text: &str, words: &[&str]| assert_eq!(filled(text, "u", None), words, "{text}");
        check("", &[]);
        check("  -i  a\tb\n", &["-i", "a", "b"]);
        check(r#"'a b' "c d" e\ f"#, &["a b", "c d", "e f"]);
        check(r#"a'b'"c"d"#, &["abcd"]);
        check(r#"'' """#, &["", ""]);
        check(r#"'a\b' "a\b" "a\"b\\" \'"#, &[r"a\b", r"a\b", r#"a"b\"#, "'"]);
        check("a\\\nb", &["ab"]);
        check(
            "$HOME `ls` $(ls) ; | > * ~ # x",
            &["$HOME", "`ls`", "$(ls)", ";", "|", ">", "*", "~", "#", "x"],
        );
        check(r#"'{"a": {}}' {} {a:b}"#, &[r#"{"a": {}}"#, "{}", "{a:b}"]);
    }

    // Holds T-rx.3.
    #[test]
    fn an_address_always_stays_one_argument() {
        for url in [
            "http://h/a b/c.ts",
            "http://h/\"a\" 'b",
            "http://h/a;rm -rf /",
            "http://h/$(id)`id`${HOME}",
            r"http://h/a\ \\b\",
            "http://h/{userAgent}{channelId}{streamUrl}",
            "http://h/a&b|c>d<e*?~#\n-f x",
            "",
        ] {
            let expected = ["-i", url, &format!("--u={url},c1"), url, "-f", "mpegts"];
            let parameters = r#"-i {streamUrl} --u={streamUrl},{channelId} "{streamUrl}" -f mpegts"#;
            assert_eq!(filled(parameters, url, Some("agent")), expected, "{url}");
            assert_eq!(filled("-a {userAgent}", "u", Some(url)), ["-a", url]);
        }
    }

    #[test]
    fn without_a_user_agent_its_option_is_omitted() {
        let parameters = "-y {userAgent} -i {streamUrl} x {userAgent} a={userAgent}";
        assert_eq!(filled(parameters, "u", None), ["-i", "u", "x", "a="]);
        assert_eq!(filled(parameters, "u", Some("p 1")), ["-y", "p 1", "-i", "u", "x", "p 1", "a=p 1"]);
    }

    #[test]
    fn an_invalid_command_is_refused_with_its_field() {
        let check = |command: &str, parameters: &str, field: &str, part: &str| {
            let error = CommandTemplate::new(command, parameters).unwrap_err();
            assert!(error.field == field && error.reason.contains(part), "{command} {parameters}: {error}");
        };
        check(" ", "", "command", "program is required");
        check("bin/x", "", "command", "absolute path");
        check("x\0", "", "command", "absolute path");
        check("x", "'a", "parameters", "single quote");
        check("x", "\"a\\", "parameters", "double quote");
        check("x", "a\\", "parameters", "backslash");
        check("x", "a\0", "parameters", "no argument");
        check("x", "-i {streamURL}", "parameters", "{streamURL} is not known");
        assert!(CommandTemplate::new("/opt/my tools/x", "").is_ok());
    }

    #[test]
    fn a_command_prints_without_its_arguments() {
        let values = CommandValues {
            stream_url: "http://u:secret@h",
            user_agent: None,
            channel_id: "",
            protocols: "",
        };
        let argv = CommandTemplate::new("p", "-i {streamUrl}").unwrap().fill(values);
        assert_eq!(format!("{argv:?}"), "Argv(p and 2 arguments)");
    }
}
