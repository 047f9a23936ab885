//! Types of fields of programmes.

use domain::guide::programme::ProgrammeImage;
use resource_derive::View;
use serde::{Serialize, Serializer};
use server::reply::Refusal;

use crate::guide::EntryId;
use crate::player::addresses::without_credentials;
use crate::rest::frame::call::Call;
use crate::rest::frame::field::Kind;
use crate::rest::frame::value::{Shape, Time};

impl Shape for EntryId {
    const KIND: Kind = Kind::Either(&[Kind::Integer, Kind::Text]);
}

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Stored(id) => serializer.serialize_u64(id.0),
            Self::Generated(..) => serializer.collect_str(self),
        }
    }
}

/// Returns a time in seconds since 1970.
pub(in crate::rest::api::epg) fn time(seconds: i64) -> Time {
    Time(seconds.saturating_mul(1000))
}

/// Returns the refusal for a programme that does not exist.
pub(super) fn unknown() -> Refusal {
    Refusal::not_found("No ProgramData matches the given query.")
}

/// An image of a programme.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ProgramImageView {
    /// URL of the image. Users other than admins see no credentials in it.
    url: String,
    /// Subject of the image.
    #[field(example = "poster")]
    r#type: Option<&'static str>,
    /// 1 for a small image to 3 for a large one.
    #[field(example = "2")]
    size: Option<u32>,
}

impl ProgramImageView {
    pub(super) fn new(image: &ProgrammeImage, addresses: ImageAddresses) -> Self {
        Self {
            url: addresses.shown(&image.url),
            r#type: image.kind.map(|it| it.word()),
            size: image.size.map(u32::from),
        }
    }
}

/// How addresses of images appear in an answer: with their credentials for admins only.
#[derive(Clone, Copy, Debug)]
pub(in crate::rest::api::epg) struct ImageAddresses {
    with_credentials: bool,
}

impl ImageAddresses {
    pub(in crate::rest::api::epg) fn new(call: &Call) -> Self {
        Self { with_credentials: call.is_admin() }
    }

    pub(in crate::rest::api::epg) fn shown(self, url: &str) -> String {
        if self.with_credentials { url.to_owned() } else { without_credentials(url) }
    }
}
