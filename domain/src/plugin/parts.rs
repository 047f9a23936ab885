//! The fields and actions of a plugin, from its manifest or as its code reported them.

use serde_json::Value;

use super::action::Action;
use super::field::Field;
use super::manifest::{Manifest, actions_of, fields_of};
use super::record::ReportedParts;

/// Returns the fields of a plugin: those of its manifest, else those that its code reported when it was started last. A
/// select field of the manifest without options has those that the code reported for it.
pub fn fields_of_plugin(manifest: Option<&Manifest>, reported: Option<&ReportedParts>) -> Vec<Field> {
    let of_code = || reported.map(|it| fields_of(&Value::from(it.fields.clone())).0).unwrap_or_default();
    let Some(mut fields) = manifest.and_then(|it| it.fields.clone()) else { return of_code() };
    if fields.iter().any(Field::lacks_options) {
        let of_code = of_code();
        fields.iter_mut().for_each(|it| it.fill_options(&of_code));
    }
    fields
}

/// Returns the actions of a plugin: those of its manifest, else those that its code reported when it was started last.
pub fn actions_of_plugin(manifest: Option<&Manifest>, reported: Option<&ReportedParts>) -> Vec<Action> {
    match manifest.and_then(|it| it.actions.clone()) {
        Some(actions) => actions,
        None => reported.map(|it| actions_of(&Value::from(it.actions.clone())).0).unwrap_or_default(),
    }
}
