//! Logos of the other service.

use std::collections::HashMap;

use domain::ids::LogoId;
use domain::logo::{LOGO_NAME_CHARS_MAX, LOGO_URL_CHARS_MAX, Logo, logo_copy_path};

use super::household::Household;
use super::ids::IdPicker;
use super::plan::{Existing, Foundation, Rules};
use super::report::{KindReport, Report};
use super::row::{SourceRow, plain};
use super::stream::web_address;
use super::table::{LOGO_FILE, SourceTable};

impl Foundation {
    /// Takes logos with an address over. One whose address the store has already is used.
    ///
    /// Nobody knows whether an admin typed an address or a playlist named it, so all count as named by a provider: none
    /// leads to this machine.
    pub(crate) fn add_logos(
        &mut self,
        household: &Household,
        existing: &Existing,
        rules: &Rules<'_>,
        report: &mut Report,
    ) {
        let rows = household.rows(SourceTable::Logos);
        let mut ids = IdPicker::new(existing.unused.logo, rows.iter().filter_map(|it| it.id("id")));
        let mut by_url: HashMap<String, LogoId> =
            existing.logos.iter().map(|it| (it.url.clone(), it.id)).collect();
        let named_by =
            self.accounts.values().map(|it| &it.account).find(|it| !it.is_custom()).map(|it| it.id);
        let kind = report.kind(SourceTable::Logos.label());
        for row in rows {
            let name = plain(row.text("name").unwrap_or_default(), LOGO_NAME_CHARS_MAX);
            let Some(source) = row.id("id").filter(|it| !self.logo_ids.contains_key(it)) else {
                kind.skip(format!("logo {name}"), "its id is missing, too large, or occurs twice");
                continue;
            };
            if let Some(file) = row.text(LOGO_FILE) {
                self.add_logo_file(source, name, file, (&mut ids, existing), rules, kind);
                continue;
            }
            let url = row.text("url").and_then(web_address);
            let Some(url) = url.filter(|it| it.chars().count() <= LOGO_URL_CHARS_MAX) else {
                kind.skip(
                    format!("logo {name}"),
                    "it is a file, or its address is too long; upload it again",
                );
                continue;
            };
            if let Some(id) = by_url.get(&url) {
                kind.merged += 1;
                self.logo_ids.insert(source, *id);
                continue;
            }
            let id = LogoId(ids.pick(source));
            kind.taken += 1;
            self.logo_ids.insert(source, id);
            by_url.insert(url.clone(), id);
            self.logos.push(Logo {
                id,
                name,
                url,
                file: None,
                named_by,
                guide_source: None,
                updated_at: rules.now,
            });
        }
    }

    /// Takes over a logo whose file was fetched. An uploaded one with its name is used.
    fn add_logo_file(
        &mut self,
        source: u32,
        name: String,
        file: &str,
        (ids, existing): (&mut IdPicker, &Existing),
        rules: &Rules<'_>,
        kind: &mut KindReport,
    ) {
        if let Some(known) = existing.logos.iter().find(|it| it.file.is_some() && it.name == name) {
            kind.merged += 1;
            self.logo_ids.insert(source, known.id);
            return;
        }
        let id = LogoId(ids.pick(source));
        kind.taken += 1;
        self.logo_ids.insert(source, id);
        let (url, file) = (logo_copy_path(id), Some(file.to_owned()));
        self.logos.push(Logo {
            id,
            name,
            url,
            file,
            named_by: None,
            guide_source: None,
            updated_at: rules.now,
        });
    }

    /// Returns the address of a logo of the source: of its file, or that in its row.
    pub(crate) fn logo_address(&self, id: LogoId, row: &SourceRow) -> Option<String> {
        match row.text(LOGO_FILE) {
            Some(_) => Some(logo_copy_path(id)),
            None => row.text("url").and_then(web_address),
        }
    }
}
