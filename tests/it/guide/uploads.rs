//! Uploaded guides: in every packing, replaced, and kept beyond a restart.

use serde_json::{Value, json};

use super::sources::{GuideStory, SOURCES};
use crate::import::fixture::gzip;
use crate::support::api::PASSWORD;
use crate::support::client::say;

impl GuideStory {
    /// Sends a file to a path, and returns the status and the body of the answer.
    pub async fn upload(&self, path: &str, content_type: &str, head: &str, body: &[u8]) -> (u16, Value) {
        let token = self.admin.token("root", PASSWORD).await.text("access").to_owned();
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{head}",
            head.len() + body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        let answer = say(self.gateway.api, &request).await;
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let body = text.split_once("\r\n\r\n").map_or("", |it| it.1);
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guide_is_uploaded_in_every_packing_and_replaced() {
    let story = GuideStory::new().await;
    let text = story.guide(2);
    let new = format!("{SOURCES}upload/");
    let mut path = String::new();
    for (number, (content_type, file_name, bytes)) in [
        ("text/xml", "guide.xml", text.clone().into_bytes()),
        ("text/plain", "guide.xml.gz", gzip(text.as_bytes())),
        ("image/png", "picture.png", gzip(&gzip(text.as_bytes()))),
    ]
    .into_iter()
    .enumerate()
    {
        let boundary = "multipart/form-data; boundary=xyz";
        let head = format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nGuide {number}\r\n--xyz\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"{file_name}\"\r\n\
             Content-Type: {content_type}\r\n\r\n"
        );
        let body = [&bytes[..], b"\r\n--xyz--\r\n"].concat();
        let (status, made) = story.upload(&new, boundary, &head, &body).await;
        assert_eq!(status, 201, "{made}");
        assert_eq!(
            (&made["name"], &made["source_type"]),
            (&json!(format!("Guide {number}")), &json!("xmltv"))
        );
        path = format!("{SOURCES}{}/", made["id"]);
        let seen = story.ended(&path).await;
        assert_eq!((&seen["status"], &seen["epg_data_count"]), (&json!("success"), &json!(2)), "{seen}");
        assert!(seen["file_path"].as_str().is_some_and(|it| it.ends_with(".xmltv")), "{seen}");
    }
    let before = story.admin.get(&path).await.body;
    let (status, replaced) = story
        .upload(&format!("{path}upload/"), "application/octet-stream", "", story.guide(5).as_bytes())
        .await;
    assert_eq!(status, 200, "{replaced}");
    assert_ne!(replaced["file_path"], before["file_path"]);
    crate::support::until_async("the new guide", async || {
        story.admin.get(&path).await.body["epg_data_count"] == 5
    })
    .await;
    let (status, refused) = story.upload(&new, "application/octet-stream", "", b"").await;
    assert_eq!(status, 400, "{refused}");
    let dummy = story.create(json!({ "name": "dummy", "source_type": "dummy" })).await;
    let (status, _) =
        story.upload(&format!("{dummy}upload/"), "application/octet-stream", "", b"<tv/>").await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_other_than_a_guide_is_an_error_of_the_source() {
    let story = GuideStory::new().await;
    let (status, made) = story.upload(&format!("{SOURCES}upload/"), "text/html", "", b"<html></html>").await;
    assert_eq!(status, 201, "{made}");
    let seen = story.ended(&format!("{SOURCES}{}/", made["id"])).await;
    assert_eq!(seen["status"], "error", "{seen}");
    assert!(seen["last_message"].as_str().unwrap().contains("web page"), "{seen}");
}
