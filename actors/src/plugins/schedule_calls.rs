//! The calls with which the code of a plugin lists and changes its schedules.

use domain::plugin::protocol::{Fault, REFUSED};
use domain::plugin::{ActionSchedule, ScheduleSource, TASK_ACTION, actions_of_plugin};
use domain::time::iso_millis;
use serde_json::{Map, Value, json};

use super::backend::InstalledPlugin;
use super::life::Life;
use super::schedules::ShownSchedule;
use crate::clock::now_ms;
use crate::schedule;

/// Maximum length of the id of an action, in bytes.
const ACTION_BYTES_MAX: usize = 200;

impl Life {
    /// Answers a call of the plugin about its schedules.
    pub(super) async fn schedule(
        &self,
        method: &str,
        params: Map<String, Value>,
        installed: &InstalledPlugin,
    ) -> Result<Value, Fault> {
        let (schedules, id) = (&self.shared.schedules, installed.record.id);
        let answer = match method {
            "schedule.set" => match read_schedule(params, installed) {
                Ok(new) => schedules.change(id, |all| all.set(new)).await.map(|()| json!({})),
                Err(reason) => Err(reason),
            },
            "schedule.delete" => match params.get("id").and_then(Value::as_str).map(str::to_owned) {
                Some(name) => {
                    let deleted = schedules.change(id, move |all| Ok(all.delete(&name))).await;
                    deleted.map(|it| json!({ "deleted": it }))
                }
                None => Err("the id of a schedule is a text".to_owned()),
            },
            _ => {
                let all: Vec<Value> = schedules.by_plugin(id).iter().map(shown).collect();
                Ok(json!({ "schedules": all }))
            }
        };
        answer.map_err(|message| Fault { code: REFUSED, message })
    }
}

/// Reads a schedule that the code of a plugin sets.
fn read_schedule(
    mut params: Map<String, Value>,
    installed: &InstalledPlugin,
) -> Result<ActionSchedule, String> {
    let mut text = |name: &str| match params.remove(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("the {name} of a schedule is a text")),
    };
    let (id, cron, action) = (text("id")?, text("cron")?, text("action")?);
    schedule::check_cron(&cron)?;
    let (manifest, reported) = (&installed.manifest, installed.record.reported.as_ref());
    // Until a plugin without a list of actions has started once, nobody knows them.
    let is_listed = manifest.actions.is_some() || reported.is_some();
    let actions = actions_of_plugin(Some(manifest), reported);
    let is_known = action == TASK_ACTION || actions.iter().any(|it| it.id == action);
    if action.len() > ACTION_BYTES_MAX || is_listed && !is_known {
        return Err(format!("the plugin has no action {action:.50}"));
    }
    let params = match params.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err("the params of a schedule are an object".to_owned()),
    };
    let source = ScheduleSource::Plugin;
    Ok(ActionSchedule { id, source, cron, action, params, since: now_ms(), last: None })
}

fn shown(it: &ShownSchedule) -> Value {
    let ActionSchedule { id, source, cron, action, params, .. } = &it.schedule;
    json!({
        "id": id, "cron": cron, "action": action, "params": params, "source": source.name(),
        "next_run": it.next_run.map(iso_millis),
    })
}
