//! The published OpenAPI document, checked by an external program.

use std::path::Path;

use serde_json::Value;

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json")
}

#[test]
fn the_published_document_describes_every_route() {
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap();
    let routes = rest::table();
    assert!(!routes.is_empty());
    for route in routes {
        let operation = &document["paths"][route.path][route.method.to_lowercase()];
        assert_eq!(operation["operationId"], route.operation_id.as_str(), "{} {}", route.method, route.path);
        // An empty alternative means that some callers need none.
        let security = operation["security"].as_array().unwrap();
        let needs_credentials = !security.is_empty() && !security.contains(&serde_json::json!({}));
        assert_eq!(needs_credentials, route.level.is_some(), "{} {}", route.method, route.path);
    }
}

mod slow {
    use std::process::Command;

    /// Holds T-rest.2.
    #[test]
    fn the_published_document_is_valid_openapi() {
        let run = Command::new("openapi-spec-validator").arg(super::path()).output();
        let output = run.expect("openapi-spec-validator is needed for this test: just tools");
        let reply = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{reply}");
    }
}
