//! The additional tags of playlists, in the interface.

use std::collections::BTreeMap;

use domain::playlist::tags::{PlaylistTags, TagPlace, Tags, check_tags};
use route_frame::field::{Field, Kind};
use route_frame::value::{Readable, Shape};
use serde::Serialize;
use serde_json::Value;
use server::field_errors::FieldErrors;

/// Tags by name: an object of texts.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(in crate::api::channels) struct TagsValue(pub(super) Tags);

impl Shape for TagsValue {
    const KIND: Kind = Kind::Object;
}

impl Readable for TagsValue {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let tags = value.as_object().ok_or("Expected an object of names and texts.")?;
        let text = |(name, value): (&String, &Value)| {
            let text = match value {
                Value::String(it) => it.clone(),
                Value::Number(it) => it.to_string(),
                Value::Bool(it) => it.to_string(),
                _ => return Err("Expected an object of names and texts.".to_owned()),
            };
            Ok((name.clone(), text))
        };
        tags.iter().map(text).collect::<Result<BTreeMap<_, _>, _>>().map(Self)
    }
}

/// The tags that a client sent.
pub(super) struct SentTags {
    pub(super) header: Option<TagsValue>,
    pub(super) entries: Option<TagsValue>,
    pub(super) properties: Option<TagsValue>,
}

impl SentTags {
    /// Replaces the tags that were sent, or returns the errors of each field.
    pub(super) fn apply(self, tags: &mut PlaylistTags) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (field, place, sent, stored) in [
            ("playlist_header", TagPlace::Header, self.header, &mut tags.header),
            ("playlist_attributes", TagPlace::Entries, self.entries, &mut tags.entries),
            ("kodi_properties", TagPlace::Properties, self.properties, &mut tags.properties),
        ] {
            let Some(TagsValue(sent)) = sent else { continue };
            match check_tags(place, &sent) {
                Ok(()) => *stored = sent,
                Err(error) => errors.add(field, error.to_string()),
            }
        }
        errors.or(())
    }
}
