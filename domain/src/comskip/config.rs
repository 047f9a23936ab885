//! The configuration of comskip: lines of `key=value`, comments and sections.

/// Maximum size of a configuration, in bytes.
pub const CONFIG_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of a key and of a value, in bytes. Comskip itself reads longer ones into buffers of a fixed size.
const KEY_BYTES_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 255;
/// Keys that the gateway sets itself, because it reads the output: other outputs would only fill the disk.
const OWN: &str = "output_edl=1\noutput_default=1\nedl_offset=0\nedl_skip_field=0\ndelete_logo_file=1\nlive_tv=0\nverbose=0\n";
/// The beginnings of keys that are left out for the same reason. The first line of a key is the one that counts.
const LEFT_OUT: [&str; 6] = ["output_", "edl_", "delete_logo_file", "live_tv", "verbose", "dvrms"];

/// A checked configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComskipConfig {
    text: String,
}

/// A line that is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("The configuration is larger than 1 MB.")]
    TooLarge,
    #[error("Line {0}: expected key=value, a comment that begins with ; or #, or a [section].")]
    Form(usize),
    #[error("Line {0}: a key has up to 64 letters, digits and underscores.")]
    Key(usize),
    #[error("Line {0}: the value is missing.")]
    NoValue(usize),
    #[error("Line {0}: a value has up to 255 bytes without control characters.")]
    Value(usize),
}

impl ComskipConfig {
    /// Reads a configuration. Keys are not compared with those that comskip knows, which differ between its versions;
    /// comskip skips unknown ones.
    ///
    /// # Errors
    /// The first line that is not valid, counted from 1.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        if text.len() > CONFIG_BYTES_MAX {
            return Err(ConfigError::TooLarge);
        }
        for (number, line) in text.lines().enumerate() {
            if let Some(entry) = entry(line) {
                check(entry, number + 1)?;
            }
        }
        Ok(Self { text: text.to_owned() })
    }

    /// Returns the text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns what comskip reads: the lines without those about its output, after lines of the gateway.
    pub fn for_program(&self) -> String {
        let mut text = OWN.to_owned();
        for line in self.text.lines() {
            let Some((key, value)) = entry(line).and_then(|it| it.split_once('=')) else { continue };
            let key = key.trim().to_ascii_lowercase();
            if !LEFT_OUT.iter().any(|it| key.starts_with(it)) {
                text.push_str(&key);
                text.push('=');
                text.push_str(value.trim());
                text.push('\n');
            }
        }
        text
    }
}

/// Returns a line without the white space around it, unless it is empty, a comment or a section.
fn entry(line: &str) -> Option<&str> {
    // Editors of other systems begin files with a mark of the byte order.
    let line = line.trim_start_matches('\u{feff}').trim();
    let is_section = line.starts_with('[') && line.ends_with(']');
    (!line.is_empty() && !line.starts_with([';', '#']) && !is_section).then_some(line)
}

fn check(line: &str, number: usize) -> Result<(), ConfigError> {
    let (key, value) = line.split_once('=').ok_or(ConfigError::Form(number))?;
    let (key, value) = (key.trim(), value.trim());
    let is_key = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    if key.is_empty() || key.len() > KEY_BYTES_MAX || !key.bytes().all(is_key) {
        return Err(ConfigError::Key(number));
    }
    if value.is_empty() {
        return Err(ConfigError::NoValue(number));
    }
    match value.len() > VALUE_BYTES_MAX || value.chars().any(char::is_control) {
        true => Err(ConfigError::Value(number)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_invalid_line_is_named() {
        let check = |text: &str, expected: Option<ConfigError>| {
            assert_eq!(ComskipConfig::parse(text).err(), expected, "{text:?}");
        };
        check("", None);
        check(
            "[Main Settings]\n;a comment\n# another\n\ndetect_method = 43 ;1=black\r\nglobal_threshold=1.05",
            None,
        );
        check("\u{feff}detect_method=1", None);
        check("a=1\nnothing", Some(ConfigError::Form(2)));
        check("a=1\n=2", Some(ConfigError::Key(2)));
        check("a b=1", Some(ConfigError::Key(1)));
        check(&format!("{}=1", "a".repeat(65)), Some(ConfigError::Key(1)));
        check("\n\na=", Some(ConfigError::NoValue(3)));
        check(&format!("a={}", "1".repeat(256)), Some(ConfigError::Value(1)));
        check("a=1\u{7}2", Some(ConfigError::Value(1)));
        check(&"#".repeat(CONFIG_BYTES_MAX + 1), Some(ConfigError::TooLarge));
    }

    #[test]
    fn the_outputs_are_those_of_the_gateway() {
        let config = ComskipConfig::parse(
            "\u{feff}[Output=Control]\noutput_edl=0\nOutput_Framearray=1\nverbose=10\n;a=1\n\u{feff}detect_method = 1",
        );
        assert_eq!(config.unwrap().for_program(), format!("{OWN}detect_method=1\n"));
    }
}
