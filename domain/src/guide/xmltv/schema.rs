//! The elements of a guide, as far as readers of damaged ones need them.

/// Elements directly below `programme`: those of the DTD, and `live`, which guides add.
const PROGRAMME_CHILDREN: [&str; 26] = [
    "title",
    "sub-title",
    "desc",
    "credits",
    "date",
    "category",
    "keyword",
    "language",
    "orig-language",
    "length",
    "icon",
    "url",
    "country",
    "episode-num",
    "video",
    "audio",
    "previously-shown",
    "premiere",
    "last-chance",
    "new",
    "live",
    "subtitles",
    "rating",
    "star-rating",
    "review",
    "image",
];
const CHANNEL_CHILDREN: [&str; 3] = ["display-name", "icon", "url"];
/// The roles of people.
const ROLES: [&str; 10] = [
    "director",
    "actor",
    "writer",
    "adapter",
    "producer",
    "composer",
    "editor",
    "presenter",
    "commentator",
    "guest",
];
/// Elements of HTML that guides have in texts and often do not close.
const INLINE: [&str; 19] = [
    "b", "i", "u", "p", "a", "em", "br", "hr", "tt", "sub", "sup", "big", "div", "span", "font", "small",
    "strong", "center", "li",
];

/// The kind of an element that stands for itself in a guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    Channel,
    Programme,
}

impl ElementKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Programme => "programme",
        }
    }

    /// Returns whether an element belongs directly below this one.
    pub(super) fn has_child(self, name: &str) -> bool {
        match self {
            Self::Channel => CHANNEL_CHILDREN.contains(&name),
            Self::Programme => PROGRAMME_CHILDREN.contains(&name),
        }
    }
}

/// Returns whether an element of a programme may have this child. Those with texts have none.
pub(super) fn has_part(parent: &str, name: &str) -> bool {
    match parent {
        "credits" => ROLES.contains(&name),
        "video" => matches!(name, "present" | "colour" | "aspect" | "quality"),
        "audio" => matches!(name, "present" | "stereo"),
        "subtitles" => name == "language",
        "rating" | "star-rating" => matches!(name, "value" | "icon"),
        _ => matches!(name, "image" | "url") && ROLES.contains(&parent),
    }
}

/// Returns whether an element has other elements and no text of its own.
pub(super) fn is_container(name: &str) -> bool {
    matches!(name, "credits" | "video" | "audio" | "subtitles" | "rating" | "star-rating")
}

pub(super) fn is_inline(name: &str) -> bool {
    INLINE.contains(&name)
}

/// Returns whether guides have elements with this name anywhere.
pub(super) fn is_known(name: &str) -> bool {
    matches!(
        name,
        "programme" | "channel" | "tv" | "present" | "colour" | "aspect" | "quality" | "stereo" | "value"
    ) || PROGRAMME_CHILDREN.contains(&name)
        || CHANNEL_CHILDREN.contains(&name)
        || ROLES.contains(&name)
}
