//! Uploaded pictures of users. The address of a picture contains a random text and changes with the picture, so that
//! pages can show it without credentials.

use domain::user::User;
use http::StatusCode;
use node::uploads::{fetch_upload, share_upload};
use route_frame::access::{ADMIN, Access, STREAMER};
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::picture::Picture;
use route_frame::route::{NoContent, Route};
use route_frame::upload::{FILE, Upload};
use serde_json::{Map, Value, json};
use server::reply::Refusal;
use services::files::{AVATARS_PATH, Folder};
use services::image_types::PictureFormat;
use tracing::warn;
use uuid::Uuid;

use super::user_view::UserView;
use crate::context::{RestCall, RestContext};
use crate::record::{RecordCall, find};

/// Maximum size of a picture of a user, in bytes.
pub const PICTURE_BYTES_MAX: u64 = 2 << 20;

const OWN: &str = "/api/accounts/users/me/avatar/";
const ONE: &str = "/api/accounts/users/{id}/avatar/";

pub(super) fn routes() -> Vec<Route> {
    let upload = |route: Route| {
        route
            .with_upload(PICTURE_BYTES_MAX)
            .refuses(StatusCode::BAD_REQUEST, "The file is not a PNG, JPEG, GIF or WebP picture.")
    };
    vec![
        upload(Route::post(OWN, STREAMER, "Replaces the picture of the caller.", upload_own)),
        Route::delete(OWN, STREAMER, "Removes the picture of the caller.", remove_own),
        upload(Route::post(ONE, ADMIN, "Replaces the picture of a user.", upload_of)),
        Route::delete(ONE, ADMIN, "Removes the picture of a user.", remove_of),
        Route::get("/api/accounts/avatars/{name}/", Access::Anyone, "Returns the picture of a user.", show)
            .refuses(StatusCode::NOT_FOUND, "No picture has this name."),
    ]
}

async fn upload_own(call: Call, file: Upload) -> Result<UserView, Refusal> {
    let id = call.user()?.id.0;
    replace(call, id, file).await
}

async fn upload_of(call: Call, file: Upload) -> Result<UserView, Refusal> {
    let id = call.id()?;
    replace(call, id, file).await
}

async fn remove_own(call: Call) -> Result<NoContent, Refusal> {
    let id = call.user()?.id.0;
    remove(call, id).await
}

async fn remove_of(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id()?;
    remove(call, id).await
}

async fn show(call: Call) -> Result<Picture, Refusal> {
    let name = call.text("name")?.to_owned();
    let format = PictureFormat::from_name(&name).ok_or_else(unknown)?;
    fetch_upload(&call.rest().nodes, Folder::Avatars, &name).await;
    let files = call.rest().files.clone();
    let read = run_blocking("read a picture", move || std::fs::read(files.path(Folder::Avatars, &name)?));
    let bytes = read.await?.map_err(|_| unknown())?;
    Ok(Picture { format, bytes })
}

fn unknown() -> Refusal {
    Refusal::not_found("Not found.")
}

/// Stores the picture before the user that refers to it, and removes the previous one afterwards.
async fn replace(call: Call, id: u32, upload: Upload) -> Result<UserView, Refusal> {
    // Checked before the file is stored.
    call.rest().models.users.load().get(id).ok_or_else(Refusal::unknown::<User>)?;
    // One at a time: a picture that no user refers to yet would be removed as unused.
    let _one = call.rest().pictures.picture_changes.lock().await;
    let files = call.rest().files.clone();
    let saved = run_blocking("store a picture", move || {
        let bytes = upload.bytes().map_err(|error| storing_failed(&error))?;
        let format = PictureFormat::from_content(&bytes).ok_or_else(|| {
            Refusal::field(FILE, "Upload a valid image. The file is not a PNG, JPEG, GIF or WebP picture.")
        })?;
        let name = format!("{id}-{}.{}", Uuid::new_v4().simple(), format.extension());
        files.save(Folder::Avatars, &name, &*bytes).map_err(|error| storing_failed(&error))?;
        Ok::<_, Refusal>(name)
    });
    let name = saved.await??;
    if let Err(refusal) = share_upload(&call.rest().nodes, Folder::Avatars, &name).await {
        remove_unused(call.rest(), id).await;
        return Err(refusal);
    }
    let url = format!("{AVATARS_PATH}{name}");
    let user = change_avatar(&call, id, move |avatar| {
        avatar.insert("type".to_owned(), json!("upload"));
        avatar.insert("url".to_owned(), json!(url));
    });
    let user = user.await;
    remove_unused(call.rest(), id).await;
    call.render(&user?)
}

async fn remove(call: Call, id: u32) -> Result<NoContent, Refusal> {
    let _one = call.rest().pictures.picture_changes.lock().await;
    change_avatar(&call, id, |avatar| {
        if avatar.get("type").is_some_and(|it| it == "upload") {
            avatar.insert("type".to_owned(), json!("initials"));
            avatar.remove("url");
        }
    })
    .await?;
    remove_unused(call.rest(), id).await;
    Ok(NoContent)
}

async fn change_avatar(
    call: &Call,
    id: u32,
    change: impl FnOnce(&mut Map<String, Value>) + Send + 'static,
) -> Result<User, Refusal> {
    call.write(move |write| {
        let mut user = find::<User>(write, id)?;
        change(&mut user.avatar);
        write.put(&user)?;
        Ok(user)
    })
    .await
}

/// 503: the data folder does not hold the file.
fn storing_failed(error: &std::io::Error) -> Refusal {
    warn!(%error, "failed to store a picture of a user");
    Refusal::unavailable("The picture cannot be stored: the data folder refuses it.")
}

/// Removes the pictures of a user that the user does not refer to, or all if the user was deleted. A failure leaves them
/// for the next time.
pub(super) async fn remove_unused(context: &RestContext, id: u32) {
    let (files, users) = (context.files.clone(), context.models.users.load());
    let used = users
        .get(id)
        .and_then(|it| it.avatar.get("url")?.as_str()?.strip_prefix(AVATARS_PATH).map(str::to_owned));
    let removed = run_blocking("remove unused pictures of a user", move || {
        let of_user = format!("{id}-");
        let names = files.names(Folder::Avatars)?;
        let mut unused = names.iter().filter(|it| it.starts_with(&of_user) && Some(*it) != used.as_ref());
        unused.try_for_each(|it| files.remove(Folder::Avatars, it))
    });
    if let Ok(Err(error)) = removed.await {
        warn!(user.id = id, %error, "failed to remove unused pictures of a user");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ADMIN as ADMIN_USER, Answer, Rest, STREAMER as STREAMER_USER};

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";

    async fn upload(rest: &Rest, path: &str, user: u32, body: &'static [u8]) -> Answer {
        let headers = [("authorization", &*rest.bearer(user)), ("content-type", "image/png")];
        rest.send("POST", path, &headers, body).await
    }

    #[tokio::test]
    async fn an_uploaded_picture_is_served_until_it_is_replaced_or_removed() {
        let rest = Rest::start().await;
        let first = upload(&rest, OWN, STREAMER_USER, PNG).await;
        assert_eq!((first.status, &first.body["avatar_config"]["type"]), (200, &json!("upload")));
        let url = |answer: &Answer| {
            let url = answer.body["avatar_url"].as_str().unwrap();
            url.strip_prefix("http://192.0.2.1:9191").unwrap_or_else(|| panic!("{url}")).to_owned()
        };
        let shown = rest.send("GET", &url(&first), &[], "").await;
        assert_eq!((shown.status, &shown.headers["content-type"]), (200, &"image/png".parse().unwrap()));
        assert!(
            shown.text.contains("not much of a picture")
                && shown.headers.contains_key("content-security-policy")
        );

        let of_user = format!("/api/accounts/users/{STREAMER_USER}/avatar/");
        let gif = upload(&rest, &of_user, ADMIN_USER, b"GIF89a....").await;
        assert_eq!(gif.status, 200, "{}", gif.text);
        assert!(url(&gif).ends_with(".gif"));
        let statuses = async || {
            [
                rest.send("GET", &url(&first), &[], "").await.status,
                rest.send("GET", &url(&gif), &[], "").await.status,
            ]
        };
        assert_eq!(statuses().await, [404, 200]);
        assert_eq!(rest.streamer("DELETE", OWN, Value::Null).await.status, 204);
        assert_eq!(statuses().await, [404, 404]);
        let me = rest.streamer("GET", "/api/accounts/users/me/", Value::Null).await.body;
        assert_eq!((&me["avatar_url"], &me["avatar_config"]), (&Value::Null, &json!({ "type": "initials" })));
        let gone = upload(&rest, "/api/accounts/users/99/avatar/", ADMIN_USER, PNG).await;
        assert_eq!(gone.status, 404);
    }

    #[tokio::test]
    async fn a_file_other_than_a_picture_or_too_large_is_refused_and_stored_nowhere() {
        let rest = Rest::start().await;
        let svg = upload(&rest, OWN, STREAMER_USER, b"<svg onload=\"alert(1)\"/>").await;
        let message = "Upload a valid image. The file is not a PNG, JPEG, GIF or WebP picture.";
        assert_eq!((svg.status, svg.body), (400, json!({ "file": [message] })));
        let large = vec![0x89; usize::try_from(PICTURE_BYTES_MAX).unwrap() + 1];
        let headers = [("authorization", &*rest.bearer(STREAMER_USER)), ("content-type", "image/png")];
        assert_eq!(rest.send("POST", OWN, &headers, large).await.status, 413);
        for name in ["1-x.png", "..%2f..%2fkey.png", "%2e%2e.png", "key", ".png"] {
            let answer = rest.send("GET", &format!("{AVATARS_PATH}{name}"), &[], "").await;
            assert_eq!(answer.status, 404, "{name}");
        }
        assert_eq!(rest.user(STREAMER_USER).avatar, Map::new());
    }
}
