"""When a checkpoint pays: reasons, profiles and the break-even; pure."""
