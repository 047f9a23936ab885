//! The fields of panel accounts. `tests/it/panels.rs` tests their refreshes over real sockets.

use domain::account::{Account, PlaylistLocation};
use domain::account_addresses::AddressRecord;
use domain::ids::AccountId;
use domain::panel::{LiveForm, ProfileInfo};
use serde_json::{Value, json};

use super::accounts::LIST;
use crate::testing::{Rest, SECRET};

const SERVER: &str = "http://panel.example:8080";

fn one(id: &Value) -> String {
    format!("{LIST}{id}/")
}

/// Returns the server, the user and the password of a stored account.
fn stored(rest: &Rest, id: &Value) -> Option<[String; 3]> {
    let accounts = rest.models.accounts.load();
    let account: &Account = accounts.get(u32::try_from(id.as_u64()?).ok()?)?;
    let login = account.list.panel()?;
    Some([login.server.expose().to_owned(), login.username.clone(), login.password.expose().to_owned()])
}

#[tokio::test]
async fn a_panel_account_is_created_from_every_form_of_its_address_and_changed_by_field() {
    let rest = Rest::start().await;
    let pasted = format!("{SERVER}/get.php?username=anna&password={SECRET}&type=m3u_plus");
    for (n, (server_url, login)) in [
        (SERVER, Some(("anna", SECRET))),
        ("panel.example:8080/", Some(("anna", SECRET))),
        ("http://panel.example:8080/player_api.php", Some(("anna", SECRET))),
        (pasted.as_str(), None),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = json!({ "name": n.to_string(), "account_type": "XC", "server_url": server_url });
        if let Some((username, password)) = login {
            body["username"] = username.into();
            body["password"] = password.into();
        }
        let made = rest.admin("POST", LIST, body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        assert!(!made.text.contains(SECRET), "{}", made.text);
        let shown = [&made.body["account_type"], &made.body["server_url"], &made.body["username"]];
        assert_eq!(shown, ["XC", SERVER, "anna"]);
        assert_eq!(made.body["stream_identity"], "stream_id");
        let id = &made.body["id"];
        assert_eq!(stored(&rest, id), Some([SERVER, "anna", SECRET].map(str::to_owned)));
        let seen = rest.standard("GET", &one(id), Value::Null).await.body;
        assert_eq!(
            (&seen["server_url"], &seen["username"]),
            (&json!("http://panel.example:8080/"), &Value::Null)
        );
    }

    let made = rest.admin("GET", LIST, Value::Null).await.body;
    let id = made["results"].as_array().unwrap().last().unwrap()["id"].clone();
    for (change, server, user, password) in [
        (json!({ "name": "renamed" }), SERVER, "anna", SECRET),
        (json!({ "password": "" }), SERVER, "anna", SECRET),
        (json!({ "password": "two" }), SERVER, "anna", "two"),
        (json!({ "username": "bert", "password": null }), SERVER, "bert", "two"),
        (json!({ "server_url": "https://other.example" }), "https://other.example", "bert", "two"),
        (
            json!({ "server_url": "http://o.example/live/u/p/1.ts", "username": "own" }),
            "http://o.example",
            "own",
            "p",
        ),
    ] {
        let changed = rest.admin("PATCH", &one(&id), change.clone()).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        assert_eq!(stored(&rest, &id), Some([server, user, password].map(str::to_owned)), "{change}");
    }
}

#[tokio::test]
async fn an_incomplete_panel_account_is_refused_by_field() {
    let rest = Rest::start().await;
    let required = json!(["This field is required for accounts of the type XC."]);
    for (body, errors) in [
        (json!({}), json!({ "server_url": required, "username": required, "password": required })),
        (json!({ "server_url": SERVER, "username": "u" }), json!({ "password": required })),
        (
            json!({ "server_url": "ftp://panel.example", "username": "u", "password": "p" }),
            json!({ "server_url": ["Enter the URL of a panel, such as http://panel.example:8080."] }),
        ),
        (
            json!({ "server_url": SERVER, "username": "u", "password": "p", "file_path": "/a" }),
            json!({ "file_path": ["An account of the type XC has no file."] }),
        ),
    ] {
        let mut account = json!({ "name": "a", "account_type": "XC" });
        account.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let refused = rest.admin("POST", LIST, account).await;
        assert_eq!((refused.status, &refused.body), (400, &errors), "{body}");
    }
}

#[tokio::test]
async fn the_form_of_addresses_is_the_setting_else_the_one_found_else_the_one_of_the_login() {
    let rest = Rest::start().await;
    let body = json!({
        "name": "a", "account_type": "XC", "server_url": SERVER, "username": "u", "password": SECRET,
    });
    let made = rest.admin("POST", LIST, body).await;
    let path = one(&made.body["id"]);
    let id = u32::try_from(made.body["id"].as_u64().unwrap()).unwrap();
    let check = async |setting: &str, form: &str, source: &str| {
        let seen = rest.standard("GET", &path, Value::Null).await.body;
        let shown = [&seen["live_form"], &seen["live_form_in_use"], &seen["live_form_source"]];
        assert_eq!(shown, [setting, form, source]);
    };
    let change = async |form: &str| {
        let changed = rest.admin("PATCH", &path, json!({ "live_form": form })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
    };
    check("auto", "ts", "default").await;
    let store = rest.models.store.clone();
    let profile = rest.models.accounts.load().get(id).unwrap().default_profile().unwrap().id;
    let formats = json!({ "allowed_output_formats": ["m3u8", "rtmp"] });
    let user_info = formats.as_object().unwrap().clone();
    let info = ProfileInfo { user_info, ..ProfileInfo::new(profile, AccountId(id)) };
    store.write(move |write| write.put(&info)).await.unwrap();
    check("auto", "m3u8", "login").await;
    let mut record = AddressRecord::new(AccountId(id));
    record.form_found(LiveForm::NoExtension, 1_800_000_000_000);
    let found = record.clone();
    store.write(move |write| write.put(&found)).await.unwrap();
    check("auto", "none", "found").await;
    // What says nothing about the form keeps it.
    for other in
        [json!({ "name": "b" }), json!({ "live_form": "auto" }), json!({ "use_first_address": true })]
    {
        let changed = rest.admin("PATCH", &path, other).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        check("auto", "none", "found").await;
    }
    for form in ["ts", "none", "m3u8"] {
        change(form).await;
        check(form, form, "setting").await;
        change("auto").await;
        check("auto", "m3u8", "login").await;
    }
    assert_eq!(store.collection::<AddressRecord>().get(id).unwrap(), None, "it may be found out at once");
    // Another login may be one of another panel.
    store.write(move |write| write.put(&record)).await.unwrap();
    check("auto", "none", "found").await;
    let changed = rest.admin("PATCH", &path, json!({ "username": "bert" })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    check("auto", "ts", "default").await;
    change("m3u8").await;
    let refused = rest.admin("PATCH", &path, json!({ "live_form": "flv" })).await;
    let message = refused.body["live_form"][0].as_str().unwrap_or_default();
    assert!(message.starts_with("\"flv\" is not a valid choice."), "{}", refused.text);
    // A playlist names whole addresses.
    let changed = rest.admin("PATCH", &path, json!({ "account_type": "STD" })).await;
    let shown = [&changed.body["live_form"], &changed.body["live_form_in_use"]];
    assert_eq!(shown, [&json!("auto"), &Value::Null], "{}", changed.text);
    let refused = rest.admin("PATCH", &path, json!({ "live_form": "ts" })).await;
    let message = json!({ "live_form": ["Only accounts of the type XC have a form of addresses."] });
    assert_eq!((refused.status, &refused.body), (400, &message));
    assert_eq!(rest.admin("PATCH", &path, json!({ "live_form": "auto" })).await.status, 200);
}

#[tokio::test]
async fn an_account_can_change_its_type() {
    let rest = Rest::start().await;
    let url = format!("{SERVER}/get.php?username=anna&password={SECRET}");
    let made = rest.admin("POST", LIST, json!({ "name": "a", "server_url": url })).await;
    let id = made.body["id"].clone();
    let changed = rest.admin("PATCH", &one(&id), json!({ "account_type": "XC" })).await;
    assert_eq!((changed.status, &changed.body["account_type"]), (200, &json!("XC")), "{}", changed.text);
    assert_eq!(stored(&rest, &id), Some([SERVER, "anna", SECRET].map(str::to_owned)));
    let changed = rest.admin("PATCH", &one(&id), json!({ "account_type": "STD" })).await;
    assert_eq!((&changed.body["account_type"], &changed.body["server_url"]), (&json!("STD"), &Value::Null));
    let accounts = rest.models.accounts.load();
    assert!(accounts.iter().all(|it| it.list == PlaylistLocation::None));
}
