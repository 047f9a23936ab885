//! The names of recorded files, made from templates.
//!
//! A template is a path of components, such as `TV_Shows/{show}/S{season:02d}E{episode:02d}`. Each component is cleaned after
//! its fields are filled in, so that no title leads to another folder.

use std::fmt::Write as _;

/// Extension of recorded files.
pub const FILE_EXTENSION: &str = "ts";
/// Maximum length of a component in bytes. File systems allow 255; a number and an extension may follow.
const COMPONENT_BYTES_MAX: usize = 200;
/// Maximum number of components.
const COMPONENTS_MAX: usize = 8;
/// Maximum length of a template, in characters.
const TEMPLATE_CHARS_MAX: usize = 255;
/// Maximum width of a number.
const WIDTH_MAX: usize = 9;
/// Extensions of templates of similar services, which convert their recordings. They are replaced.
const OTHER_EXTENSIONS: [&str; 4] = [".mkv", ".mp4", ".ts", ".m2ts"];

/// The values of the fields of templates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameFields {
    pub show: String,
    pub title: String,
    pub sub_title: String,
    pub season: Option<u32>,
    pub episode: Option<u32>,
    pub year: Option<u32>,
    pub channel: String,
    /// The time of the first packet as text, such as `2031-05-04 20-15`.
    pub start: String,
    pub id: u32,
}

/// A template for the path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTemplate {
    components: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A field, and the minimum number of digits if it is a number.
    Field(Field, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Show,
    Title,
    SubTitle,
    Season,
    Episode,
    Year,
    Channel,
    Start,
    Id,
}

impl Field {
    const NAMES: [(&'static str, Self); 9] = [
        ("show", Self::Show),
        ("title", Self::Title),
        ("sub_title", Self::SubTitle),
        ("season", Self::Season),
        ("episode", Self::Episode),
        ("year", Self::Year),
        ("channel", Self::Channel),
        ("start", Self::Start),
        ("id", Self::Id),
    ];

    fn is_number(self) -> bool {
        matches!(self, Self::Season | Self::Episode | Self::Year | Self::Id)
    }
}

/// The fault of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("has a brace without its counterpart")]
    Brace,
    #[error(
        "has the unknown field {{{0}}}; known are show, title, sub_title, season, episode, year, channel, start, id"
    )]
    UnknownField(String),
    #[error("has an unknown format of the field {{{0}}}; known is a number of digits, as in {{season:02d}}")]
    Format(String),
    #[error("must be a relative path without ..")]
    Path,
    #[error("has more than 8 folders or 255 characters")]
    TooLong,
    #[error("is empty")]
    Empty,
}

impl NameTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// The first fault, worded to follow the name of the setting.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let text = text.trim();
        if text.chars().count() > TEMPLATE_CHARS_MAX {
            return Err(TemplateError::TooLong);
        }
        if text.starts_with('/') || text.contains('\\') || text.contains('\0') {
            return Err(TemplateError::Path);
        }
        let lower = text.to_ascii_lowercase();
        let other = OTHER_EXTENSIONS.iter().find(|it| lower.ends_with(*it));
        let text = other.map_or(text, |it| &text[..text.len() - it.len()]);
        let components: Vec<_> = text.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
        if components.contains(&"..") {
            return Err(TemplateError::Path);
        }
        match components.len() {
            0 => return Err(TemplateError::Empty),
            n if n > COMPONENTS_MAX => return Err(TemplateError::TooLong),
            _ => {}
        }
        let components = components.into_iter().map(pieces).collect::<Result<_, _>>()?;
        Ok(Self { components })
    }

    /// Returns the path of a file, relative and without an extension.
    pub fn path(&self, fields: &NameFields) -> String {
        let names = self.components.iter().map(|it| clean(&filled(it, fields)));
        names.collect::<Vec<_>>().join("/")
    }
}

fn pieces(component: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = component;
    while let Some(at) = rest.find(['{', '}']) {
        if rest[at..].starts_with('}') {
            return Err(TemplateError::Brace);
        }
        let (text, field) = (&rest[..at], &rest[at + 1..]);
        let end = field.find(['{', '}']).ok_or(TemplateError::Brace)?;
        if field[end..].starts_with('{') {
            return Err(TemplateError::Brace);
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        pieces.push(field_of(&field[..end])?);
        rest = &field[end + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

fn field_of(text: &str) -> Result<Piece, TemplateError> {
    let (name, format) = text.split_once(':').unwrap_or((text, ""));
    let field = Field::NAMES.iter().find(|it| it.0 == name).map(|it| it.1);
    let field = field.ok_or_else(|| TemplateError::UnknownField(text.to_owned()))?;
    if format.is_empty() {
        return Ok(Piece::Field(field, 0));
    }
    let digits = format.strip_suffix('d').unwrap_or(format);
    let width = digits.parse().ok().filter(|it| field.is_number() && *it <= WIDTH_MAX);
    Ok(Piece::Field(field, width.ok_or_else(|| TemplateError::Format(text.to_owned()))?))
}

fn filled(pieces: &[Piece], fields: &NameFields) -> String {
    let mut name = String::new();
    for piece in pieces {
        let (field, width) = match piece {
            Piece::Text(text) => {
                name.push_str(text);
                continue;
            }
            Piece::Field(field, width) => (*field, *width),
        };
        let number = match field {
            Field::Show => Err(&fields.show),
            Field::Title => Err(&fields.title),
            Field::SubTitle => Err(&fields.sub_title),
            Field::Channel => Err(&fields.channel),
            Field::Start => Err(&fields.start),
            Field::Season => Ok(fields.season),
            Field::Episode => Ok(fields.episode),
            Field::Year => Ok(fields.year),
            Field::Id => Ok(Some(fields.id)),
        };
        match number {
            Ok(Some(number)) => drop(write!(name, "{number:0width$}")),
            Ok(None) => {}
            Err(text) => name.push_str(text),
        }
    }
    name
}

/// Returns a name that every usual file system accepts.
fn clean(name: &str) -> String {
    let is_wrong =
        |it: char| it.is_control() || matches!(it, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    let spaced: String = name.chars().map(|it| if is_wrong(it) { ' ' } else { it }).collect();
    let mut cleaned = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    // An empty year leaves its brackets.
    for empty in [" ()", " []"] {
        cleaned = cleaned.replace(empty, "");
    }
    let end = (0..=COMPONENT_BYTES_MAX.min(cleaned.len())).rev().find(|it| cleaned.is_char_boundary(*it));
    cleaned.truncate(end.unwrap_or(0));
    let trimmed = cleaned.trim_matches(|it: char| it == '.' || it == '-' || it.is_whitespace());
    if trimmed.is_empty() { "_".to_owned() } else { trimmed.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields() -> NameFields {
        NameFields {
            show: "Late / Show".to_owned(),
            title: "Late / Show".to_owned(),
            sub_title: "..".to_owned(),
            season: Some(2),
            episode: Some(13),
            year: None,
            channel: "News: 24".to_owned(),
            start: "2031-05-04 20-15".to_owned(),
            id: 7,
        }
    }

    #[test]
    fn templates_are_filled_and_cleaned_component_by_component() {
        for (template, expected) in [
            ("TV_Shows/{show}/S{season:02d}E{episode:02d}.mkv", "TV_Shows/Late Show/S02E13"),
            ("Movies/{title} ({year}).mkv", "Movies/Late Show"),
            ("{channel}/{title} {start}", "News 24/Late Show 2031-05-04 20-15"),
            ("{sub_title}/{sub_title}", "_/_"),
            ("a//./b.MP4", "a/b"),
            ("{id:4}", "0007"),
        ] {
            assert_eq!(NameTemplate::parse(template).unwrap().path(&fields()), expected, "{template}");
        }
    }

    #[test]
    fn faults_of_templates_are_named() {
        use TemplateError::{Brace, Empty, Format, Path, TooLong, UnknownField};
        for (template, expected) in [
            ("{show", Brace),
            ("show}", Brace),
            ("{{show}}", Brace),
            ("{shows}", UnknownField("shows".to_owned())),
            ("{show:02d}", Format("show:02d".to_owned())),
            ("{season:99d}", Format("season:99d".to_owned())),
            ("/etc/{show}", Path),
            ("../{show}", Path),
            ("a\\{show}", Path),
            (" / ", Empty),
            (".mkv", Empty),
            ("a/b/c/d/e/f/g/h/i", TooLong),
            (&"x".repeat(256), TooLong),
        ] {
            // A path that begins with a slash is refused first.
            let expected = if template == " / " { Path } else { expected };
            assert_eq!(NameTemplate::parse(template).err(), Some(expected), "{template}");
        }
    }

    proptest! {
        /// Holds T-dvr.7.
        #[test]
        fn a_path_stays_in_its_folder_whatever_the_titles_are(
            title in any::<String>(), show in "[./\\\\ -]{0,12}", channel in ".{0,300}", template in "[a-z{}:/.]{0,40}",
        ) {
            let fields = NameFields { title, show, channel, ..fields() };
            let fixed = ["{show}/{title}", "{channel}/{show}/{title} {start}", "{title}"];
            for template in fixed.into_iter().chain([template.as_str()]) {
                let Ok(parsed) = NameTemplate::parse(template) else { continue };
                let path = parsed.path(&fields);
                let n = path.split('/').count();
                prop_assert_eq!(n, parsed.components.len(), "{}", &path);
                for name in path.split('/') {
                    prop_assert!(!matches!(name, "" | "." | ".."), "{}", &path);
                    prop_assert!(name.len() <= COMPONENT_BYTES_MAX, "{}", &path);
                    prop_assert!(!name.contains(|it: char| it.is_control() || it == '\\'), "{}", &path);
                    prop_assert!(!name.starts_with(['.', ' ']) && !name.ends_with(['.', ' ']), "{}", &path);
                }
            }
        }
    }
}
