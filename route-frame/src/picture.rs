//! Answers with a picture.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use server::WarpBody;
use services::image_types::{PICTURE_TYPES, PictureFormat};
use warp::reply::Response as Reply;

use super::route::{Answer, AnswerShape};

/// 200 with a picture whose address never leads to another content, so that clients keep it.
#[derive(Debug)]
pub struct Picture {
    pub format: PictureFormat,
    pub bytes: Vec<u8>,
}

impl Answer for Picture {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(PICTURE_TYPES);

    fn into_reply(self) -> Reply {
        let mut reply = Response::new(WarpBody::from(self.bytes));
        for (name, value) in [
            (CONTENT_TYPE, self.format.media_type()),
            (CACHE_CONTROL, "private, max-age=31536000, immutable"),
            // A browser never takes it for a page.
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        ] {
            reply.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        reply
    }
}
