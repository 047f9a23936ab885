//! The description of a recording in a file beside it (NFO), as media servers read it.

use super::Recording;
use crate::nfo::{XML_START, push_element};
use crate::time::iso_millis;

impl Recording {
    /// Returns the description: of a film, or of an episode.
    pub fn nfo(&self) -> String {
        let programme = self.programme.clone().unwrap_or_default();
        let element = if programme.is_movie { "movie" } else { "episodedetails" };
        let number = |it: Option<u32>| it.map(|it| it.to_string()).unwrap_or_default();
        let sub_title = programme.sub_title.filter(|it| !it.is_empty());
        let mut out = format!("{XML_START}<{element}>\n");
        if programme.is_movie {
            push_element(&mut out, "title", self.title());
            push_element(&mut out, "tagline", sub_title.as_deref().unwrap_or_default());
            push_element(&mut out, "year", &number(programme.year));
        } else {
            push_element(&mut out, "title", sub_title.as_deref().unwrap_or(self.title()));
            push_element(&mut out, "showtitle", self.title());
            push_element(&mut out, "season", &number(programme.season));
            push_element(&mut out, "episode", &number(programme.episode));
            let time = iso_millis(self.start);
            push_element(&mut out, "aired", time.get(..10).unwrap_or_default());
        }
        push_element(&mut out, "plot", programme.description.as_deref().unwrap_or_default());
        push_element(&mut out, "studio", &self.channel_name);
        out + "</" + element + ">\n"
    }
}
