//! The fields of panel accounts. `tests/it/panels.rs` tests their refreshes over real sockets.

use domain::account::{Account, PlaylistLocation};
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
