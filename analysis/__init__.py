"""From a campaign's runs to answers: functions of tables, which know nothing of how they were measured."""
