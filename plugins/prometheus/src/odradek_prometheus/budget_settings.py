"""The settings of budgets for series, which all destinations have in common."""

from __future__ import annotations

from odradek.plugin import PluginConfig
from odradek.temporality.budgets.policy import BudgetLimits


def read_budgets(config: PluginConfig) -> BudgetLimits:
    """Read the budgets; 0 is none.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    usual = BudgetLimits()
    return BudgetLimits(
        series=config.integer("budget.series", usual.series),
        principal_series=config.integer("budget.principal.series", usual.principal_series),
        app_series=config.integer("budget.app.series", usual.app_series),
        client_series=config.integer("budget.client.series", usual.client_series),
        label_values=config.integer("budget.label.values", usual.label_values),
        refuse=config.choice("budget.over", "fold", ("fold", "refuse")) == "refuse",
    )
