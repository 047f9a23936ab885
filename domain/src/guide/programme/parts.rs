//! The parts of a programme, in the words of `xmltv.dtd`.

/// A text and its language.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalText {
    /// As the guide writes it, usually a code of two letters.
    pub lang: Option<String>,
    pub text: String,
}

impl LocalText {
    /// Returns a text without a language.
    pub fn new(text: impl Into<String>) -> Self {
        Self { lang: None, text: text.into() }
    }

    /// Returns a text in a language.
    pub fn with_lang(lang: impl Into<String>, text: impl Into<String>) -> Self {
        Self { lang: Some(lang.into()), text: text.into() }
    }
}

/// Defines an enumeration whose values are words of the DTD.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of the DTD.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the word of the DTD.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Returns the value of a word of the DTD.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// The part that a person has in a programme.
    CreditRole {
        Director = "director",
        Actor = "actor",
        Writer = "writer",
        Adapter = "adapter",
        Producer = "producer",
        Composer = "composer",
        Editor = "editor",
        Presenter = "presenter",
        Commentator = "commentator",
        Guest = "guest",
    }
}

/// A person of a programme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credit {
    pub role: CreditRole,
    pub name: String,
    /// The character that an actor plays.
    pub character: Option<String>,
    /// Whether an actor is a guest of the series.
    pub is_guest: Option<bool>,
    pub images: Vec<ProgrammeImage>,
    pub urls: Vec<ProgrammeUrl>,
}

impl Credit {
    /// Returns a person of whom only the name is known.
    pub fn new(role: CreditRole, name: impl Into<String>) -> Self {
        Self {
            role,
            name: name.into(),
            character: None,
            is_guest: None,
            images: Vec::new(),
            urls: Vec::new(),
        }
    }
}

words! {
    /// The unit of a length.
    LengthUnit {
        Seconds = "seconds",
        Minutes = "minutes",
        Hours = "hours",
    }
}

/// A duration as the guide writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgrammeLength {
    pub value: u32,
    pub unit: LengthUnit,
}

impl ProgrammeLength {
    pub fn seconds(self) -> u64 {
        let factor = match self.unit {
            LengthUnit::Seconds => 1,
            LengthUnit::Minutes => 60,
            LengthUnit::Hours => 3600,
        };
        u64::from(self.value) * factor
    }
}

/// An address of a picture without a description of its contents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgrammeIcon {
    pub src: String,
    /// In pixels.
    pub width: Option<u32>,
    /// In pixels.
    pub height: Option<u32>,
}

/// An address of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgrammeUrl {
    /// The name of the site, such as `imdb`.
    pub system: Option<String>,
    pub url: String,
}

/// A number of an episode in some notation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EpisodeNumber {
    /// The notation, such as `xmltv_ns`, `onscreen` or `dd_progid`. Without one, the DTD assumes `onscreen`.
    pub system: Option<String>,
    pub value: String,
}

/// The picture of a programme.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgrammeVideo {
    /// Whether there is a picture.
    pub present: Option<bool>,
    pub colour: Option<bool>,
    /// Such as `16:9`.
    pub aspect: Option<String>,
    /// Such as `HDTV`.
    pub quality: Option<String>,
}

/// The sound of a programme.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgrammeAudio {
    /// Whether there is sound.
    pub present: Option<bool>,
    /// Such as `mono`, `stereo` or `dolby digital`.
    pub stereo: Option<String>,
}

/// An earlier screening of a programme.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreviouslyShown {
    /// As the guide writes it, usually a date.
    pub start: Option<String>,
    /// The `id` of a channel.
    pub channel: Option<String>,
}

words! {
    /// How subtitles are shown.
    SubtitlesKind {
        /// Can be switched on.
        Teletext = "teletext",
        /// Part of the picture.
        Onscreen = "onscreen",
        /// A person shows sign language.
        DeafSigned = "deaf-signed",
    }
}

/// The subtitles of a programme.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgrammeSubtitles {
    pub kind: Option<SubtitlesKind>,
    pub language: Option<LocalText>,
}

/// A rating by age, or a rating in stars such as `7/10`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgrammeRating {
    /// The system that rates, such as `MPAA`.
    pub system: Option<String>,
    pub value: String,
    pub icons: Vec<ProgrammeIcon>,
}

words! {
    /// Whether a review is a text or an address.
    ReviewKind {
        Text = "text",
        Url = "url",
    }
}

/// A review of a programme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgrammeReview {
    pub kind: ReviewKind,
    /// Where it was published.
    pub source: Option<String>,
    pub reviewer: Option<String>,
    pub lang: Option<String>,
    /// The review, or its address.
    pub text: String,
}

words! {
    /// The subject of an image.
    ImageKind {
        Poster = "poster",
        Backdrop = "backdrop",
        Still = "still",
        Person = "person",
        Character = "character",
    }
}

/// An address of an image with a description of its contents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgrammeImage {
    pub url: String,
    pub kind: Option<ImageKind>,
    /// 1 below 200 pixels in the longer dimension, 2 from 200 to 400, 3 above.
    pub size: Option<u8>,
    /// Whether it is higher than wide.
    pub is_portrait: Option<bool>,
    /// The name of the site.
    pub system: Option<String>,
}
