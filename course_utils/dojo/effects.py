"""Which tools of AgentDojo have a side effect, and which of their arguments say where it goes."""

READ = ("read", False)
CHANGES, LEAVES = ("reversible", False), ("irreversible", True)
# Tool -> what it does to the world, and whether it can carry data out. A tool that only answers
# questions is not listed. A page is read by asking its owner's server for it, so `get_webpage`
# tells the owner what is in the address.
EFFECTS = {
    "send_email": LEAVES,
    "delete_email": ("irreversible", False),
    "create_calendar_event": LEAVES,  # it invites the participants by e-mail
    "cancel_calendar_event": LEAVES,
    "reschedule_calendar_event": LEAVES,
    "add_calendar_event_participants": LEAVES,
    "append_to_file": CHANGES,
    "create_file": CHANGES,
    "delete_file": ("irreversible", False),
    "share_file": LEAVES,
    "reserve_hotel": LEAVES,
    "reserve_car_rental": LEAVES,
    "reserve_restaurant": LEAVES,
    "send_money": LEAVES,
    "schedule_transaction": LEAVES,
    "update_scheduled_transaction": LEAVES,
    "update_password": ("irreversible", False),
    "update_user_info": CHANGES,
    "add_user_to_channel": CHANGES,
    "send_direct_message": LEAVES,
    "send_channel_message": LEAVES,
    "invite_user_to_slack": LEAVES,
    "remove_user_from_slack": ("irreversible", False),
    "post_webpage": LEAVES,
    "get_webpage": ("read", True),
}
# Tool -> the arguments that say where something goes, or what it happens to.
DESTINATIONS = {
    "send_email": ("recipients", "cc", "bcc"),
    "delete_email": ("email_id",),
    "create_calendar_event": ("participants",),
    "cancel_calendar_event": ("event_id",),
    "reschedule_calendar_event": ("event_id",),
    "add_calendar_event_participants": ("participants",),
    "append_to_file": ("file_id",),
    "create_file": ("filename",),
    "delete_file": ("file_id",),
    "share_file": ("email",),
    "reserve_hotel": ("hotel",),
    "reserve_car_rental": ("company",),
    "reserve_restaurant": ("restaurant",),
    "send_money": ("recipient",),
    "schedule_transaction": ("recipient",),
    "update_scheduled_transaction": ("recipient",),
    "update_password": ("password",),
    "update_user_info": ("first_name", "last_name", "street", "city"),
    "add_user_to_channel": ("user", "channel"),
    "send_direct_message": ("recipient",),
    "send_channel_message": ("channel",),
    "invite_user_to_slack": ("user", "user_email"),
    "remove_user_from_slack": ("user",),
    "post_webpage": ("url",),
    "get_webpage": ("url",),
}
