//! `/api/channels/dvr/`: the search for commercials in recordings.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

use domain::comskip::{CONFIG_BYTES_MAX, ComskipConfig, ConfigError};
use domain::core_settings::DVR_SETTINGS;
use media::find_program;
use node::uploads::share_upload;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::upload::{FILE, Upload};
use route_frame::value::Verbatim;
use serde::Serialize;
use serde_json::json;
use server::reply::Refusal;
use services::files::{COMSKIP_CONFIG, Folder};

use super::recordings::dvr_settings;
use crate::api::core::change_setting;
use crate::context::{RestCall, RestContext};

/// How commercials are found in recordings.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ComskipConfig", edit = ComskipConfigEdit)]
pub(crate) struct ComskipConfigView {
    /// Whether commercials are searched for after each recording; `comskip_enabled` of `dvr_settings`.
    #[field(edit, example = "true")]
    enabled: bool,
    /// Lines of `key=value`, comments and sections, as comskip reads them. Keys about its output have no effect. At most
    /// 1 MB.
    #[field(edit, blank, chars_max = CONFIG_BYTES_MAX, example = "detect_method=43")]
    config: Verbatim,
    /// Name of the stored file; empty if there is none.
    #[field(example = "comskip.ini")]
    path: &'static str,
    /// Whether a configuration was stored. Without one, comskip uses its own values.
    exists: bool,
    /// Whether the program is installed.
    available: bool,
}

/// An uploaded configuration.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ComskipUpload")]
pub(crate) struct ComskipUploadView {
    /// Always true.
    success: bool,
    /// Name of the stored file.
    #[field(example = "comskip.ini")]
    path: &'static str,
    /// Always true.
    exists: bool,
}

const CONFIG: &str = "/api/channels/dvr/comskip-config/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(CONFIG, ADMIN, "Returns how commercials are found in recordings.", get),
        Route::put(CONFIG, ADMIN, "Changes how commercials are found. Fields may be left out.", put)
            .with_bulk_body(),
        Route::post(CONFIG, ADMIN, "Replaces the configuration of comskip by a file.", upload)
            .with_upload(CONFIG_BYTES_MAX as u64),
    ]
}

async fn get(call: Call) -> Result<ComskipConfigView, Refusal> {
    view(&call).await
}

async fn put(call: Call, edit: ComskipConfigEdit) -> Result<ComskipConfigView, Refusal> {
    if let Some(Verbatim(text)) = edit.config {
        let config = checked("config", &text)?;
        save(&call, config).await?;
    }
    if let Some(enabled) = edit.enabled {
        let context = Arc::clone(call.rest());
        call.write(move |write| {
            change_setting(write, &context, None, DVR_SETTINGS, |mut value| {
                value.insert("comskip_enabled".to_owned(), json!(enabled));
                value
            })
        })
        .await?;
    }
    view(&call).await
}

async fn upload(call: Call, file: Upload) -> Result<ComskipUploadView, Refusal> {
    let read = run_blocking("read an upload", move || file.bytes()).await?;
    let bytes = read.map_err(|error| Refusal::fault(format_args!("read an upload: {error}")))?;
    // Comments may have letters of any encoding.
    let config = checked(FILE, &String::from_utf8_lossy(&bytes))?;
    save(&call, config).await?;
    Ok(ComskipUploadView { success: true, path: COMSKIP_CONFIG, exists: true })
}

fn checked(field: &'static str, text: &str) -> Result<ComskipConfig, Refusal> {
    ComskipConfig::parse(text).map_err(|error: ConfigError| Refusal::field(field, error.to_string()))
}

async fn save(call: &Call, config: ComskipConfig) -> Result<(), Refusal> {
    let context = Arc::clone(call.rest());
    let saved = run_blocking("save the configuration of comskip", move || {
        context.files.save(Folder::Comskip, COMSKIP_CONFIG, config.text().as_bytes())
    });
    saved
        .await?
        .map_err(|error| Refusal::unavailable(format!("The configuration cannot be saved: {error}.")))?;
    share_upload(&call.rest().nodes, Folder::Comskip, COMSKIP_CONFIG).await
}

async fn view(call: &Call) -> Result<ComskipConfigView, Refusal> {
    let enabled = dvr_settings(call).comskip_enabled;
    let context = Arc::clone(call.rest());
    let read = run_blocking("read the configuration of comskip", move || {
        let available = find_program(&context.config.programs.comskip).is_some();
        Ok::<_, io::Error>((stored(&context)?, available))
    });
    let (stored, available) = read
        .await?
        .map_err(|error| Refusal::unavailable(format!("The configuration cannot be read: {error}.")))?;
    let exists = stored.is_some();
    let path = if exists { COMSKIP_CONFIG } else { "" };
    Ok(ComskipConfigView { enabled, config: Verbatim(stored.unwrap_or_default()), path, exists, available })
}

/// Returns the stored configuration. Blocks.
fn stored(context: &RestContext) -> io::Result<Option<String>> {
    let file = match File::open(context.files.path(Folder::Comskip, COMSKIP_CONFIG)?) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(CONFIG_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::testing::{ADMIN, Answer, Rest};

    async fn upload(rest: &Rest, content: &[u8]) -> Answer {
        let mut body =
            b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"my.ini\"\r\n\r\n".to_vec();
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n--b--\r\n");
        let bearer = rest.bearer(ADMIN);
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "multipart/form-data; boundary=b")];
        rest.send("POST", CONFIG, &headers, body).await
    }

    #[tokio::test]
    async fn the_configuration_is_set_in_both_forms_and_bad_lines_are_named() {
        let rest = Rest::start().await;
        let first = rest.admin("GET", CONFIG, Value::Null).await.body;
        assert_eq!(
            (&first["enabled"], &first["config"], &first["path"], &first["exists"]),
            (&json!(false), &json!(""), &json!(""), &json!(false))
        );
        let text = "\n[Main Settings]\n;comment\ndetect_method=43\n";
        let put = rest.admin("PUT", CONFIG, json!({ "enabled": true, "config": text })).await;
        assert_eq!(
            (put.status, &put.body["enabled"], &put.body["config"], &put.body["exists"]),
            (200, &json!(true), &json!(text), &json!(true)),
            "{put:?}"
        );
        let settings = rest.admin("GET", "/api/core/settings/", Value::Null).await.text;
        assert!(settings.contains("\"comskip_enabled\":true"), "{settings}");
        let refused = rest.admin("PUT", CONFIG, json!({ "enabled": false, "config": "a=1\nb\n" })).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body["config"][0].as_str().unwrap().starts_with("Line 2:"), "{refused:?}");
        let off = rest.admin("PUT", CONFIG, json!({ "enabled": false })).await.body;
        assert_eq!((&off["enabled"], &off["config"]), (&json!(false), &json!(text)), "the rest stays");

        let sent = upload(&rest, b";\xe4 comment\nmax_brightness=60\n").await;
        assert_eq!(
            (sent.status, sent.body),
            (200, json!({ "success": true, "path": "comskip.ini", "exists": true }))
        );
        let shown = rest.admin("GET", CONFIG, Value::Null).await.body;
        assert!(shown["config"].as_str().unwrap().ends_with("max_brightness=60\n"), "{shown}");
        let refused = upload(&rest, b"max_brightness=60\n=1").await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body["file"][0].as_str().unwrap().starts_with("Line 2:"), "{refused:?}");
        let large = upload(&rest, &vec![b';'; CONFIG_BYTES_MAX + 1]).await;
        assert_eq!(large.status, 413, "{large:?}");
        assert_eq!(rest.admin("GET", CONFIG, Value::Null).await.body["config"], shown["config"]);
        assert_eq!(rest.admin("POST", CONFIG, json!({})).await.status, 400);
    }

    #[tokio::test]
    async fn only_admins_see_and_change_the_configuration() {
        let rest = Rest::start().await;
        assert_eq!(rest.standard("GET", CONFIG, Value::Null).await.status, 403);
        assert_eq!(rest.standard("PUT", CONFIG, json!({ "enabled": true })).await.status, 403);
        assert_eq!(rest.admin("GET", CONFIG, Value::Null).await.body["enabled"], false);
    }
}
