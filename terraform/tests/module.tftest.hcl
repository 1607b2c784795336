# Rules over variables, and what follows from them, with a provider that makes nothing.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }
  mock_data "aws_region" {
    defaults = { id = "eu-central-1", name = "eu-central-1" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:eu-central-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/made" }
  }
}

variables {
  bucket                 = "runs-of-a-test"
  break_glass_recipients = ["age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"]
  principals = {
    archiver      = ["arn:aws:iam::111122223333:role/ci"]
    restorer      = ["arn:aws:iam::111122223333:user/somebody"]
    administrator = ["arn:aws:iam::111122223333:role/operations"]
  }
}

run "names_and_defaults" {
  assert {
    condition     = sort(keys(output.role_arns)) == tolist(["administrator", "archiver", "restorer"])
    error_message = "a role that nobody may become is not made"
  }
  assert {
    condition     = aws_iam_role.this["archiver"].name == "checkpoint-archiver-archiver"
    error_message = "roles are named after the module"
  }
  assert {
    condition     = aws_kms_alias.storage.name == "alias/checkpoint-archiver-storage" && aws_kms_alias.archive.name == "alias/checkpoint-archiver-archive"
    error_message = "keys are named after the module"
  }
  assert {
    condition     = output.store_url == "s3://runs-of-a-test"
    error_message = "without a prefix the store is the bucket"
  }
  assert {
    condition     = length(aws_s3_bucket_object_lock_configuration.store) == 0 && aws_s3_bucket.store.object_lock_enabled == false
    error_message = "no lock unless it is asked for"
  }
  assert {
    condition     = output.lifecycle_days == { failure = 180, intermediate = 8, live = 180, record = 400, success = 30 }
    error_message = "days are those of the program"
  }
  assert {
    condition = alltrue([
      for rule in aws_s3_bucket_lifecycle_configuration.store.rule :
      length(rule.filter[0].tag) == 1 && rule.filter[0].tag[0].key == "archiver-class" && rule.id == "archiver-${rule.filter[0].tag[0].value}"
      if length(rule.noncurrent_version_expiration) > 0
    ])
    error_message = "without a prefix each rule names its class alone"
  }
  assert {
    condition     = !strcontains(aws_s3_bucket_policy.store.policy, "runner") && strcontains(aws_s3_bucket_policy.store.policy, "aws:SecureTransport")
    error_message = "TLS is demanded"
  }
  assert {
    condition     = !strcontains(aws_kms_key.archive.policy, "-runner") && !strcontains(aws_kms_key.archive.policy, "-sweeper")
    error_message = "no key policy names a role that is not made"
  }
}

run "everything_asked_for" {
  variables {
    name             = "team"
    prefix           = "a/b"
    object_lock      = { mode = "COMPLIANCE", days = 30 }
    retention_days   = { success = 90, record = 400 }
    sweeper_archives = true
    oidc = {
      provider_arn = "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com"
      subjects     = { sweeper = ["repo:example/*", "system:serviceaccount:agents:*", "repo:example/agents:ref:refs/heads/main"] }
    }
    principals = { sweeper = ["arn:aws:iam::111122223333:role/sweep"] }
  }
  assert {
    condition     = aws_iam_role.this["sweeper"].name == "team-sweeper" && output.store_url == "s3://runs-of-a-test/a/b"
    error_message = "name and prefix are used"
  }
  assert {
    condition     = alltrue([for rule in aws_s3_bucket_lifecycle_configuration.store.rule : rule.filter[0].and[0].prefix == "a/b/" if length(rule.noncurrent_version_expiration) > 0])
    error_message = "rules are for the prefix alone"
  }
  assert {
    condition     = aws_s3_bucket.store.object_lock_enabled && aws_s3_bucket_object_lock_configuration.store[0].rule[0].default_retention[0].mode == "COMPLIANCE"
    error_message = "a lock is made with the bucket"
  }
  assert {
    condition     = output.lifecycle_days["success"] == 90 && output.lifecycle_days["failure"] == 180
    error_message = "what is longer counts, the rest stays"
  }
  assert {
    condition     = one([for rule in aws_s3_bucket_lifecycle_configuration.store.rule : rule.expiration[0].days if rule.id == "archiver-success"]) == 90
    error_message = "the rule has the longer days"
  }
  assert {
    condition     = strcontains(output.archiver_toml["sweeper"], "success = \"90d\"") && keys(output.archiver_toml) == ["sweeper"]
    error_message = "the configuration says the same"
  }
  assert {
    condition     = strcontains(aws_iam_role_policy.this["sweeper"].policy, "\"CreatesLiveOrFinal\"") && !strcontains(aws_iam_role_policy.this["sweeper"].policy, "RetagsNothing")
    error_message = "the sweeper creates as the archiver does, and still retags"
  }
  assert {
    condition     = strcontains(aws_kms_key.archive.policy, "SweeperSeals")
    error_message = "it seals"
  }
}

# Each run of refusals sets what is wrong in another way; a run names every variable that has to be refused.

run "refusals" {
  command = plan
  variables {
    application            = "two words"
    allowed_regions        = ["Europe"]
    break_glass_recipients = []
    bucket                 = "Runs_of_a_test"
    emulator_endpoint      = "http://emulator.example.com"
    key_deletion_days      = 1
    key_rotation_days      = 1
    max_session_duration   = 90000
    name                   = "a name with blanks"
    object_lock            = { mode = "SOMETIMES", days = 1 }
    oidc = {
      provider_arn = "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com"
      subjects     = { runner = ["repo:*"] }
    }
    permissions_boundary = "AdministratorAccess"
    prefix               = "/a/"
    principals           = { archiver = ["*"] }
    retention_days       = { success = 29 }
    store_id             = "the store"
    tasks                = { restorer = [] }
  }
  expect_failures = [
    var.application, var.allowed_regions, var.break_glass_recipients, var.bucket, var.emulator_endpoint, var.key_deletion_days,
    var.key_rotation_days, var.max_session_duration, var.name, var.object_lock, var.oidc, var.permissions_boundary, var.prefix,
    var.principals, var.retention_days, var.store_id, var.tasks,
  ]
}

run "other_refusals" {
  command = plan
  variables {
    bucket      = "192.168.0.1"
    object_lock = { mode = "GOVERNANCE", days = 0 }
    oidc = {
      provider_arn = "arn:aws:iam::111122223333:role/github"
      subjects     = { runner = ["repo:example/agents:*"] }
    }
    prefix         = "a//b"
    principals     = { archiver = ["arn:aws:iam::111122223333:role/*"] }
    recipients     = ["AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ"]
    retention_days = { hold = 1000 }
    tasks          = { archiver = [""] }
  }
  expect_failures = [
    var.bucket, var.object_lock, var.oidc, var.prefix, var.principals, var.recipients, var.retention_days, var.tasks,
  ]
}

run "refusals_of_what_does_not_go_together" {
  command = plan
  variables {
    recipients = ["age1pq1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"]
    principals = {
      archiver      = ["arn:aws:iam::111122223333:role/ci"]
      administrator = ["arn:aws:iam::111122223333:role/ci"]
    }
    oidc = {
      provider_arn = "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com"
      subjects     = { runner = ["repo:example/agents:*"], administrator = ["repo:example/agents:*"] }
    }
    retention_days = { success = 30.5 }
  }
  expect_failures = [var.oidc, var.recipients, var.principals, var.retention_days]
}

run "refuses_regions_without_its_own" {
  command = plan
  variables {
    allowed_regions = ["us-east-1"]
  }
  expect_failures = [aws_s3_bucket.store]
}

run "refuses_an_identity_for_a_recipient" {
  command = plan
  variables {
    break_glass_recipients = ["AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ"]
  }
  expect_failures = [var.break_glass_recipients]
}
