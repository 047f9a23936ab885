//! Types of fields of programmes.

use domain::guide::programme::ProgrammeImage;
use resource_derive::View;
use route_frame::call::Call;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::addresses::without_credentials;

/// Returns a time in seconds since 1970.
pub(in crate::api::epg) fn time(seconds: i64) -> Time {
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
pub(in crate::api::epg) struct ImageAddresses {
    with_credentials: bool,
}

impl ImageAddresses {
    pub(in crate::api::epg) fn new(call: &Call) -> Self {
        Self { with_credentials: call.is_admin() }
    }

    pub(in crate::api::epg) fn shown(self, url: &str) -> String {
        if self.with_credentials { url.to_owned() } else { without_credentials(url) }
    }
}
