//! The avatars of imported users: pictures whose files were fetched, and a check of all others.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use anyhow::Context;
use import_from::{PlannedUser, Report, SourceTable};
use rest::check_avatar;
use serde_json::{Value, json};
use services::files::{AVATARS_PATH, Files, Folder};

/// A picture that was fetched, and its name in the data folder.
pub(super) struct NewPicture {
    fetched: String,
    name: String,
}

/// Gives new users the pictures that were fetched for them, and leaves out avatars that the gateway would not accept or
/// whose file is missing. Returns the pictures that are used.
pub(super) fn settle(
    users: &mut [PlannedUser],
    fetched: &BTreeMap<u32, String>,
    report: &mut Report,
) -> Vec<NewPicture> {
    let mut pictures = Vec::new();
    for PlannedUser { source, user, .. } in users {
        let fetched = fetched.get(source);
        let name = fetched.map(|it| format!("{}-{it}", user.id));
        if let Some(name) = &name {
            user.avatar.insert("type".to_owned(), json!("upload"));
            user.avatar.insert("url".to_owned(), json!(format!("{AVATARS_PATH}{name}")));
        }
        let is_upload = user.avatar.get("type").is_some_and(|it| it == "upload");
        let is_path = user.avatar.get("url").and_then(Value::as_str).is_some_and(|it| it.starts_with('/'));
        let reason = match (name.is_some(), check_avatar(&user.avatar)) {
            (true, Ok(())) => None,
            (false, _) if is_upload || is_path => Some("the picture has to be uploaded again"),
            (false, Ok(())) => None,
            (_, Err(_)) => Some("the avatar is not valid and left out"),
        };
        match reason {
            Some(reason) => {
                user.avatar.clear();
                let what = format!("user {}", user.username);
                report.kind(SourceTable::Users.label()).change(what, reason);
            }
            None => pictures.extend(
                fetched.zip(name).map(|(fetched, name)| NewPicture { fetched: fetched.clone(), name }),
            ),
        }
    }
    pictures
}

/// Saves pictures from a folder. What is left after a failure is removed with the next unused files of the user.
pub(super) fn save(files: &Files, from: &Path, pictures: &[NewPicture]) -> anyhow::Result<()> {
    for picture in pictures {
        let file = File::open(from.join(&picture.fetched)).context("failed to read a temporary file")?;
        files.save(Folder::Avatars, &picture.name, file).context("failed to save the picture of a user")?;
    }
    Ok(())
}
