//! Marks that guides write into titles, sub-titles and descriptions, because their format or their authors have no other
//! place for them: `ᴺᵉʷ`, `(R)`, `[HD]`, `S01 E05`, `1/6`.
//!
//! [`with_marks`] sets the fields of a programme that its marks mean, once, when the programme is made. The texts stay as they
//! are, for people. [`plain`] returns a text without its marks, by which programmes are compared.
//!
//! A text that is a name stays whole: `24`, `The 100`, `9-1-1`, `Live and Let Die`. So a word is a mark in brackets, in
//! superscript letters or before a colon, and a number with the words or signs of numbers.

mod glyphs;
mod numbers;
mod peel;
mod words;

use std::borrow::Cow;

pub(crate) use self::glyphs::{is_glyph, plain as plain_letters};
use self::peel::Peeler;
use self::words::Word;
pub(crate) use self::words::{EPISODE_WORDS, SEASON_WORDS};
use super::programme::{EpisodeNumber, LocalText, PreviouslyShown, Programme, ProgrammeVideo};

/// The text that has marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkedText {
    Title,
    SubTitle,
    /// Its beginning and its end are looked at.
    Description,
}

/// The meaning of the marks of one or more texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    pub is_new: bool,
    pub is_live: bool,
    /// Shown before.
    pub is_repeat: bool,
    pub is_premiere: bool,
    /// As in the `quality` of XMLTV.
    pub quality: Option<&'static str>,
    /// From 1.
    pub season: Option<u32>,
    /// From 1.
    pub episode: Option<u32>,
    /// Of production.
    pub year: Option<u32>,
}

impl Marks {
    fn add_word(&mut self, word: Word) {
        match word {
            Word::New => self.is_new = true,
            Word::Live => self.is_live = true,
            Word::Repeat => self.is_repeat = true,
            Word::Premiere => self.is_premiere = true,
            Word::Uhd => self.quality = Some("UHDTV"),
            Word::Hd => self.quality = self.quality.or(Some("HDTV")),
            Word::Sd => self.quality = self.quality.or(Some("SDTV")),
            Word::Other => {}
        }
    }

    /// Adds the marks of another text. Those that are here count more.
    fn add(&mut self, other: Self) {
        self.is_new |= other.is_new;
        self.is_live |= other.is_live;
        self.is_repeat |= other.is_repeat;
        self.is_premiere |= other.is_premiere;
        self.quality = self.quality.or(other.quality);
        self.year = self.year.or(other.year);
        let agrees = |one: Option<u32>, two: Option<u32>| one.is_none() || two.is_none() || one == two;
        if agrees(self.season, other.season) && agrees(self.episode, other.episode) {
            self.season = self.season.or(other.season);
            self.episode = self.episode.or(other.episode);
        }
    }

    /// Returns whether the marks name one showing, and not all of a series.
    fn names_one(&self) -> bool {
        self.season.is_some() || self.episode.is_some() || self.year.is_some()
    }
}

/// Returns the marks of a text, and the text without them. `None` if it has none.
pub fn read(text: &str, kind: MarkedText) -> Option<(Marks, Cow<'_, str>)> {
    peel::may_have_marks(text, kind).then(|| Peeler::new(text, kind).run()).flatten()
}

/// Returns a text without its marks: the one by which programmes are compared.
pub fn plain(text: &str, kind: MarkedText) -> Cow<'_, str> {
    read(text, kind).map_or(Cow::Borrowed(text), |it| it.1)
}

/// Returns the title that a rule means: without marks, unless they name one showing.
pub(crate) fn plain_of_rule(text: &str) -> Cow<'_, str> {
    match read(text, MarkedText::Title) {
        Some((marks, plain)) if !marks.names_one() => plain,
        _ => Cow::Borrowed(text),
    }
}

/// Returns the year that is a mark of a title.
pub(crate) fn year_of_title(text: &str) -> Option<u32> {
    read(text, MarkedText::Title)?.0.year
}

/// Returns a programme with the fields that the marks of its preferred texts mean. Elements of the guide count more than
/// marks.
pub fn with_marks(programme: &Programme) -> Cow<'_, Programme> {
    let Some(marks) = marks_of(programme) else { return Cow::Borrowed(programme) };
    let mut programme = programme.clone();
    apply_screening(&mut programme, marks);
    apply_numbers(&mut programme, marks);
    apply_quality_and_year(&mut programme, marks);
    Cow::Owned(programme)
}

/// Returns a programme without the episode number that [`with_marks`] added; `None` if its texts have no such mark.
pub(crate) fn without_number_of_marks(programme: &Programme) -> Option<Programme> {
    let marks = marks_of(programme)?;
    let (last, numbers) = programme.episode_numbers.split_last()?;
    let mut before = Programme { episode_numbers: numbers.to_vec(), ..programme.clone() };
    apply_numbers(&mut before, marks);
    let is_added =
        before.episode_numbers.len() > numbers.len() && before.episode_numbers.last() == Some(last);
    before.episode_numbers.truncate(numbers.len());
    is_added.then_some(before)
}

/// Returns whether a preferred text of a programme has marks.
pub(crate) fn has_marks(programme: &Programme) -> bool {
    marks_of(programme).is_some()
}

/// Returns the marks of the preferred texts.
fn marks_of(programme: &Programme) -> Option<Marks> {
    let texts = [
        (programme.titles.first(), MarkedText::Title),
        (programme.sub_titles.first(), MarkedText::SubTitle),
        (programme.descriptions.first(), MarkedText::Description),
    ];
    let mut marks: Option<Marks> = None;
    for (text, kind) in texts {
        if let Some((found, _)) = text.and_then(|it| read(&it.text, kind)) {
            marks.get_or_insert_default().add(found);
        }
    }
    marks
}

/// Sets new, live, premiere and previously shown.
fn apply_screening(programme: &mut Programme, marks: Marks) {
    let (is_new, is_repeat) = (programme.is_new, programme.previously_shown.is_some());
    programme.is_live |= marks.is_live;
    programme.is_new |= (marks.is_new || marks.is_premiere) && !is_repeat;
    if marks.is_premiere && !is_repeat && programme.premiere.is_none() {
        programme.premiere = Some(LocalText::default());
    }
    // A programme that says both is new.
    if marks.is_repeat && !is_new && !is_repeat && !programme.is_new {
        programme.previously_shown = Some(PreviouslyShown::default());
    }
}

/// Adds a number of the episode if the guide has none, or has only one of the two numbers and the mark has it too.
fn apply_numbers(programme: &mut Programme, marks: Marks) {
    let (season, episode) = programme.season_episode();
    let (own, mark) = ((season, episode), (marks.season, marks.episode));
    let agrees = |own: Option<u32>, mark: Option<u32>| own.is_none() || mark.is_none() || own == mark;
    let both = (own.0.or(mark.0), own.1.or(mark.1));
    if both == own || !agrees(own.0, mark.0) || !agrees(own.1, mark.1) {
        return;
    }
    let mut value = String::new();
    for (letter, number) in [('S', both.0), ('E', both.1)] {
        if let Some(number) = number {
            value.push(letter);
            value.push_str(&number.to_string());
        }
    }
    programme.episode_numbers.push(EpisodeNumber { system: Some("onscreen".to_owned()), value });
}

fn apply_quality_and_year(programme: &mut Programme, marks: Marks) {
    if let Some(quality) = marks.quality {
        let video = programme.video.get_or_insert_with(ProgrammeVideo::default);
        video.quality.get_or_insert_with(|| quality.to_owned());
    }
    if let Some(year) = marks.year
        && programme.date.is_none()
    {
        programme.date = Some(year.to_string());
    }
}

#[cfg(test)]
mod tests;
