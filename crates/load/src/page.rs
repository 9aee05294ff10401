//! The report as a page.

use crate::report::LoadReport;

/// The page of `downbeat load --html`.
pub fn load_page(report: &LoadReport) -> String {
    report.url.clone()
}
